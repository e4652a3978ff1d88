import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join, sep } from 'node:path'
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

/** Without a look at package.json, which says what kind of module it is. */
const TRANSLATION = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext }

const COMPILER = join(ROOT, 'node_modules/typescript-7/bin/tsc')
const OPTIONS = {
  ...{ target: 'es2022', module: 'nodenext', moduleResolution: 'nodenext' },
  ...{ strict: true, noUncheckedIndexedAccess: true, exactOptionalPropertyTypes: true, skipLibCheck: true },
  ...{ types: ['node'], typeRoots: [join(ROOT, 'node_modules/@types')] },
}
const DIAGNOSTIC = /^(.+?)\((\d+),\d+\): (error .*)$/

export interface Said {
  line: number
  text: string
}

/**
 * What the compiler has to say of each program, strictly. All are compiled at once: the declarations of packages, 100,000
 * lines, are read and checked once. The compiler that is a program of its own takes a fifth of the other's time.
 */
export async function compile(programs: readonly UserProgram[]): Promise<Said[][]> {
  const directory = await mkdtemp(join(tmpdir(), 'annals-compiled-'))
  const files = programs.map(({ file }) => file)
  await writeFile(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions: OPTIONS, files }))
  const child = spawn(process.execPath, [COMPILER, '--project', directory, '--pretty', 'false'], {
    cwd: directory,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [stdout] = await Promise.all([text(child.stdout), once(child, 'close')])
  await rm(directory, { recursive: true, force: true })
  const found: Array<Said & { of: string | undefined }> = []
  for (const line of stdout.split('\n').filter((one) => one !== '')) {
    const [, of, at, said] = DIAGNOSTIC.exec(line) ?? []
    const last = found.at(-1)
    if (of)
      found.push({
        of: files.find((file) => file.endsWith(basename(dirname(of)) + sep + basename(of))),
        line: Number(at),
        text: said!,
      })
    else if (last && line.startsWith(' ')) last.text += `\n${line}`
    else found.push({ of: undefined, line: 0, text: line })
  }
  // What is said of no program holds for all.
  return files.map((name) =>
    found.filter(({ of }) => of === undefined || of === name).map(({ line, text }) => ({ line, text })),
  )
}

async function run(node: string, cwd: string, more: Record<string, string>): Promise<Finished> {
  const { PATH = '' } = process.env
  const env = { PATH, NO_COLOR: '1', ...more }
  const child = spawn(node, ['program.js'], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: child.exitCode, stdout, stderr }
}
