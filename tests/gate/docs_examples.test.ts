import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ANNALS_BIN } from '../harness/annals_process.ts'
import { expectOk } from '../harness/expectations.ts'
import { useSharedService } from '../harness/service.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** A block of commands, and the line before it, which may say why it is not run. */
const SHELL_BLOCK = /^(.*)\n```sh\n([\s\S]*?)^```$/gm
/** The introduction of the API reference is a page like others. */
const REFERENCE = 'openapi.json'
const read = (page: string): string => {
  const content = readFileSync(join(ROOT, page), 'utf8')
  return page === REFERENCE ? JSON.parse(content).info.description : content
}
const commandsOf = (page: string) =>
  [...read(page).matchAll(SHELL_BLOCK)]
    .filter(([, before]) => !before!.startsWith('<!-- not run: '))
    .map(([, , code]) => code)
/** A reader comes from the first two, which fill the project. */
const FIRST_PAGES = ['README.md', 'docs/quickstart.md']
const OTHER_PAGES = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
  .map((name) => `docs/${name}`)
  .filter((name) => name.endsWith('.md') && !FIRST_PAGES.includes(name) && commandsOf(name).length > 0)
const programOf = (page: string) =>
  [...read(page).matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code]) => code).join('')
const INTEGRATIONS = readdirSync(join(ROOT, 'docs/integrations'))
  .map((name) => `docs/integrations/${name}`)
  .filter((page) => programOf(page) !== '')
const URL_IN_DOCS = 'http://127.0.0.1:8029'

/**
 * What stands around a page's commands. They stop at the first one that fails, an answer of 4xx or 5xx included;
 * a stream that would stay open is read for a moment.
 */
const PRELUDE = `
set -eu
npx() { test "$1" = annals; shift; annals "$@"; }
annals() { node '${ANNALS_BIN}' "$@"; }
curl() {
  case "$*" in
    *text/event-stream*) command curl --fail-with-body --max-time 3 "$@" || test $? = 28 ;;
    *) command curl --fail-with-body --max-time 20 "$@" ;;
  esac
}
`

const service = useSharedService()
let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'annals-docs-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

async function run(command: string, args: string[], env: Record<string, string>) {
  const { PATH = '' } = process.env
  const child = spawn(command, args, {
    cwd: directory,
    env: { PATH, HOME: directory, NO_COLOR: '1', ANNALS_URL: service.node.url, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: child.exitCode, stdout, stderr }
}

const hasCurl = spawnSync('curl', ['--version']).status === 0

describe.runIf(hasCurl)('the commands of', () => {
  // One project for all pages, since a reader goes from one to the next.
  let token: string
  let variables: string
  beforeAll(async () => {
    const project = await service.newProject()
    token = project.token
    const search = { body: { search: true } }
    expectOk(await service.adminClient().request('PATCH', `/admin/v1/projects/${project.id}`, search))
    const api = await service.newClient({ token })
    const { id } = expectOk(await api.createSession({}), 201)
    // What pages take from one another.
    variables = `KEY=sk-annals-… API=${URL_IN_DOCS}/api/v1 AUTH="Authorization: Bearer sk-annals-…"
      JSON='Content-Type: application/json' SESSION=${id}`
    await writeFile(join(directory, 'report.pdf'), '%PDF-1.4')
    return async () => {
      expectOk(await service.adminClient().request('DELETE', `/admin/v1/projects/${project.id}`))
    }
  })

  it.each([...FIRST_PAGES, REFERENCE, ...OTHER_PAGES])(
    '%s run, one after the other',
    async (page) => {
      expect(commandsOf(page)).not.toEqual([])
      const script = `${PRELUDE}${variables}\n${commandsOf(page).join('\n')}`
      const here = script.replaceAll(URL_IN_DOCS, service.node.url).replaceAll('sk-annals-…', token)
      const { code, stdout, stderr } = await run('bash', ['-c', here], { ANNALS_API_KEY: token })
      expect(code, `${stdout}\n${stderr}`).toBe(0)
    },
    120_000,
  )
})

describe('the program of', () => {
  beforeAll(async () => {
    await mkdir(join(directory, 'node_modules', '@annals'), { recursive: true })
    await symlink(join(ROOT, 'packages/client'), join(directory, 'node_modules', '@annals', 'client'))
    await mkdir(join(directory, 'frameworks'))
    await symlink(join(ROOT, 'node_modules'), join(directory, 'frameworks', 'node_modules'))
  })

  /** It has nothing but the client, or, on a page of an integration, its framework. */
  it.each(['README.md', 'docs/tutorial.md', ...INTEGRATIONS])(
    '%s compiles, runs and prints what it says',
    async (page) => {
      const program = programOf(page)
      const said = [...program.matchAll(/console\.log\(.*\) \/\/ (.+)$/gm)]
      const printed = said.flatMap(([, lines]) => lines!.split(' | '))
      expect(printed.length).toBeGreaterThan(0)
      const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 }
      const folder = INTEGRATIONS.includes(page) ? 'frameworks/' : ''
      const file = `${folder}${page.replace(/\W/g, '_')}.mjs`
      await writeFile(join(directory, file), ts.transpileModule(program, { compilerOptions }).outputText)
      const { token } = await service.newProject()
      const { code, stdout, stderr } = await run(process.execPath, [file], { ANNALS_API_KEY: token })
      expect(stderr).toBe('')
      expect(stdout.trimEnd().split('\n')).toEqual(printed)
      expect(code).toBe(0)
    },
  )
})

describe('what docs/integrations/mcp.md gives to a client', () => {
  const page = read('docs/integrations/mcp.md')
  const tools = [...page.matchAll(/^\| (`[^|]*`) \| [a-zA-Z]/gm)]
    .flatMap(([, names]) => names!.split(', '))
    .map((name) => name.replaceAll('`', ''))
    .filter((name) => /^[a-z_]+$/.test(name))

  async function toolsOf(transport: StdioClientTransport | StreamableHTTPClientTransport): Promise<string[]> {
    const client = new Client({ name: 'test', version: '1' })
    try {
      await client.connect(transport)
      return (await client.listTools()).tools.map(({ name }) => name)
    } finally {
      await client.close()
    }
  }

  it('starts a server with the tools that the page names, as JSON, as a command and by its address', async () => {
    const { token } = await service.newProject()
    const here = page
      .replaceAll('/path/to/annals/', ROOT)
      .replaceAll('$PWD/', ROOT)
      .replaceAll(URL_IN_DOCS, service.node.url)
      .replaceAll('sk-…', token)
    const json = JSON.parse(/```json\n([\s\S]*?)```/.exec(here)![1]!).mcpServers.annals
    const env = { PATH: process.env.PATH!, HOME: directory }
    expect(
      (await toolsOf(new StdioClientTransport({ ...json, env: { ...env, ...json.env } }))).sort(),
    ).toEqual(tools.sort())
    const [, given, command, args] = /^claude mcp add annals (.*) -- "(.*)" (.*)$/m.exec(here)!
    const named = Object.fromEntries(
      [...given!.matchAll(/--env (\w+)=(\S+)/g)].map(([, name, value]) => [name, value]),
    )
    expect({ command, args: args!.split(' '), env: named }).toEqual(json)
    const [, url, name, value] =
      /^claude mcp add --transport http annals (\S+) --header "(\w+): (.*)"$/m.exec(here)!
    const requestInit = { headers: { [name!]: value! } }
    expect((await toolsOf(new StreamableHTTPClientTransport(new URL(url!), { requestInit }))).sort()).toEqual(
      tools.sort(),
    )
  })
})
