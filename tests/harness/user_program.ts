import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

export interface Finished {
  code: number | null
  stdout: string
  stderr: string
}

/** A program as a user would have it: TypeScript in a package of its own. */
export interface UserProgram {
  readonly file: string
  /** Makes it run without a look at its types, which takes a second: of examples/, `npm run types` looks at them. */
  translate(): Promise<void>
  /** Runs what was compiled, with nothing else in its environment, by this Node or another. */
  run(env: Record<string, string>, node?: string): Promise<Finished>
  remove(): Promise<void>
}

/** The snippets of a README, one behind the other, and what their comments say that they print. */
export async function readmeProgram(path: string): Promise<{ code: string; printed: string[] }> {
  const readme = await readFile(join(ROOT, path), 'utf8')
  const code = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, snippet]) => snippet).join('\n')
  const lines = [...code.matchAll(/console\.log\(.*\) \/\/ (.+)$/gm)]
  return { code, printed: lines.flatMap(([, line]) => line!.split(' | ')) }
}

/** Puts a program where it finds the packages of this repository. */
export async function userProgram(code: string): Promise<UserProgram> {
  const directory = await mkdtemp(join(tmpdir(), 'annals-program-'))
  const file = join(directory, 'program.ts')
  await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'))
  await writeFile(join(directory, 'package.json'), '{ "type": "module" }')
  await writeFile(file, code)
  return {
    file,
    translate: () =>
      writeFile(
        join(directory, 'program.js'),
        ts.transpileModule(code, { compilerOptions: TRANSLATION }).outputText,
      ),
    run: (env, node = process.execPath) => run(node, directory, env),
    remove: () => rm(directory, { recursive: true, force: true }),
  }
}

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: true,
  types: ['node'],
}
/** Without a look at package.json, which says what kind of module it is. */
const TRANSLATION = { target: OPTIONS.target!, module: ts.ModuleKind.ESNext }

/**
 * What the compiler has to say of each program, strictly. All are compiled at once: the declarations of packages, 100,000
 * lines, are read and checked once.
 */
export function compile(programs: readonly UserProgram[]): string[][] {
  const files = programs.map(({ file }) => file)
  const compiled = ts.createProgram(files, OPTIONS)
  const { diagnostics } = compiled.emit()
  const said = [...ts.getPreEmitDiagnostics(compiled), ...diagnostics].map(({ file, messageText }) => ({
    of: files.find((name) => name === file?.fileName),
    text: ts.flattenDiagnosticMessageText(messageText, '\n'),
  }))
  // What is said of no program holds for all.
  return files.map((name) => said.filter(({ of }) => of === undefined || of === name).map(({ text }) => text))
}

async function run(node: string, cwd: string, more: Record<string, string>): Promise<Finished> {
  const { PATH = '' } = process.env
  const env = { PATH, NO_COLOR: '1', ...more }
  const child = spawn(node, ['program.js'], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: child.exitCode, stdout, stderr }
}
