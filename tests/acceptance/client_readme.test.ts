import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { useSharedService } from '../harness/service.ts'

const CLIENT = fileURLToPath(new URL('../../packages/client/', import.meta.url))
const NODE_TYPES = fileURLToPath(new URL('../../node_modules/@types/', import.meta.url))

const service = useSharedService()
/** Where a package that depends on the client would be. */
let directory: string
/** The snippets of the README, one behind the other, and what their comments say that they print. */
let program: string
let printed: string[]

beforeAll(async () => {
  const readme = await readFile(join(CLIENT, 'README.md'), 'utf8')
  program = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code).join('\n')
  printed = [...program.matchAll(/console\.log\(.*\) \/\/ (.+)$/gm)].flatMap(([, line]) => line!.split(' | '))
  directory = await mkdtemp(join(tmpdir(), 'annals-readme-'))
  await mkdir(join(directory, 'node_modules', '@annals'), { recursive: true })
  await symlink(CLIENT, join(directory, 'node_modules', '@annals', 'client'))
  await writeFile(join(directory, 'package.json'), '{ "type": "module" }')
  await writeFile(join(directory, 'readme.ts'), program)
})
afterAll(() => rm(directory, { recursive: true, force: true }))

/** Compiles the program as a user's project would, strictly; gives what the compiler has to say. */
function compile(): string[] {
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    strict: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    typeRoots: [NODE_TYPES],
    types: ['node'],
  }
  const compiled = ts.createProgram([join(directory, 'readme.ts')], options)
  const { diagnostics } = compiled.emit()
  return [...ts.getPreEmitDiagnostics(compiled), ...diagnostics].map(({ messageText }) =>
    ts.flattenDiagnosticMessageText(messageText, '\n'),
  )
}

describe("the README's program", () => {
  it('compiles, runs and prints what it says', async () => {
    expect(printed.length).toBeGreaterThan(10)
    expect(compile()).toEqual([])
    const { token } = await service.newProject()
    const { PATH = '' } = process.env
    const child = spawn(process.execPath, ['readme.js'], {
      cwd: directory,
      env: { PATH, NO_COLOR: '1', ANNALS_URL: service.node.url, ANNALS_API_KEY: token },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    expect(stderr).toBe('')
    expect(stdout.trimEnd().split('\n')).toEqual(printed)
    expect(child.exitCode).toBe(0)
  }, 120_000)
})
