import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ANNALS_BIN } from '../harness/annals_process.ts'
import { useSharedService } from '../harness/service.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const PAGES = [
  'README.md',
  'docs/quickstart.md',
  'docs/concepts.md',
  'docs/resources.md',
  'docs/cli.md',
  'docs/troubleshooting.md',
]
/** A block of commands, and the line before it, which may say why it is not run. */
const SHELL_BLOCK = /^(.*)\n```sh\n([\s\S]*?)^```$/gm
const URL_IN_DOCS = 'http://127.0.0.1:8029'

/**
 * What stands around a page's commands. They stop at the first one that fails, an answer of 4xx or 5xx included;
 * a stream that would stay open is read for a moment.
 */
const PRELUDE = `
set -eu
npx() { test "$1" = annals; shift; node '${ANNALS_BIN}' "$@"; }
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

const read = (page: string) => readFile(join(ROOT, page), 'utf8')

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
  beforeAll(async () => {
    ;({ token } = await service.newProject())
  })

  it.each(PAGES)(
    '%s run, one behind the other',
    async (page) => {
      expect(spawnSync('curl', ['--version']).status, 'curl is needed for the examples').toBe(0)
      const blocks = [...(await read(page)).matchAll(SHELL_BLOCK)]
      const runnable = blocks
        .filter(([, before]) => !before!.startsWith('<!-- not run: '))
        .map(([, , code]) => code)
      expect(runnable.length).toBeGreaterThan(0)
      // Pages that build on another one's variables expect a key.
      const script = `${PRELUDE}KEY=sk-annals-…\n${runnable.join('\n')}`
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
  })

  it.each(['README.md', 'docs/tutorial.md'])('%s compiles, runs and prints what it says', async (page) => {
    const program = [...(await read(page)).matchAll(/^```ts\n([\s\S]*?)^```$/gm)]
      .map(([, code]) => code)
      .join('')
    const said = [...program.matchAll(/console\.log\(.*\) \/\/ (.+)$/gm)]
    const printed = said.flatMap(([, lines]) => lines!.split(' | '))
    expect(printed.length).toBeGreaterThan(0)
    const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 }
    const file = `${page.replace(/\W/g, '_')}.mjs`
    await writeFile(join(directory, file), ts.transpileModule(program, { compilerOptions }).outputText)
    const { token } = await service.newProject()
    const { code, stdout, stderr } = await run(process.execPath, [file], { ANNALS_API_KEY: token })
    expect(stderr).toBe('')
    expect(stdout.trimEnd().split('\n')).toEqual(printed)
    expect(code).toBe(0)
  })
})
