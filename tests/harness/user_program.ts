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
  /** What the compiler has to say, strictly. */
  compile(): string[]
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
  await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'))
  await writeFile(join(directory, 'package.json'), '{ "type": "module" }')
  await writeFile(join(directory, 'program.ts'), code)
  return {
    compile: () => compile(join(directory, 'program.ts')),
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

// The packages' declarations, 100,000 lines, are read once for all programs.
const host = ts.createCompilerHost(OPTIONS)
const readSource = host.getSourceFile
const declarations = new Map<string, ts.SourceFile | undefined>()
host.getSourceFile = (name, ...how) => {
  if (!/\.d\.[cm]?ts$/.test(name)) return readSource(name, ...how)
  if (!declarations.has(name)) declarations.set(name, readSource(name, ...how))
  return declarations.get(name)
}

function compile(file: string): string[] {
  const compiled = ts.createProgram([file], OPTIONS, host)
  const { diagnostics } = compiled.emit()
  return [...ts.getPreEmitDiagnostics(compiled), ...diagnostics].map(({ messageText }) =>
    ts.flattenDiagnosticMessageText(messageText, '\n'),
  )
}

async function run(node: string, cwd: string, more: Record<string, string>): Promise<Finished> {
  const { PATH = '' } = process.env
  const env = { PATH, NO_COLOR: '1', ...more }
  const child = spawn(node, ['program.js'], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: child.exitCode, stdout, stderr }
}
