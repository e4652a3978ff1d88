import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Builds what a release uploads into release/dist: a tarball of each package that is not private, and the Python
 * wheel. It builds from nothing, because a build that stays keeps files whose sources are gone. `--built` takes the build
 * that is there: `npm ci` has just made it in a new clone. Names of packages, as in `npm run pack -- langgraph`, take
 * the build that is there as well, and pack only these with those of ours that they need.
 */
const ROOT = fileURLToPath(new URL('..', import.meta.url))
const OUTPUT = join(ROOT, 'release/dist')
/** What a registry's page shows, and what the licence asks for. */
const FILES = ['LICENSE', 'README.md']
/** Windows starts `npm`, which is a script there, only through a shell. npm says where its program is. */
const NPM = process.env.npm_execpath
const npm = (args, options) =>
  NPM ? execFileSync(process.execPath, [NPM, ...args], options) : execFileSync('npm', args, options)
const FIELDS = ['name', 'version', 'description', 'license', 'engines', 'files']

const packages = ['packages', 'packages/adapters']
  .map((folder) => join(ROOT, folder))
  .filter(existsSync)
  .flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))
  .filter((folder) => existsSync(join(folder, 'package.json')))
  .map((folder) => ({ folder, manifest: JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) }))
  .filter(({ manifest }) => !manifest.private)

const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const faults = packages.flatMap((one) => faultsOf(one))
if (faults.length > 0) {
  process.stderr.write(`${faults.join('\n')}\n`)
  process.exit(1)
}
const names = process.argv.slice(2).filter((name) => !name.startsWith('--'))
const wanted = names.length === 0 ? packages : needed(names)
if (!process.argv.includes('--built') && names.length === 0) buildFromNothing()
rmSync(OUTPUT, { recursive: true, force: true })
mkdirSync(OUTPUT)
const files = pack(wanted.map(({ folder }) => folder))
if (names.length === 0) wheel()
else process.stdout.write(`\nnpm install ${files.map((file) => join(OUTPUT, file)).join(' ')}\n`)

/** The packages of these names, and those of ours that they depend on. */
function needed(names) {
  const found = new Set()
  const add = (name) => {
    const one = packages.find(({ manifest }) => manifest.name === name)
    if (!one) {
      const known = packages.map(({ manifest }) => manifest.name.replace('@annals/', '')).join(', ')
      process.stderr.write(`There is no package ${name}. There are: ${known}.\n`)
      process.exit(1)
    }
    if (found.has(one)) return
    found.add(one)
    for (const other of Object.keys(one.manifest.dependencies ?? {}))
      if (other.startsWith('@annals/')) add(other)
  }
  for (const name of names) add(name === 'annals' || name.startsWith('@') ? name : `@annals/${name}`)
  return [...found]
}

function buildFromNothing() {
  for (const { folder } of packages) rmSync(join(folder, 'dist'), { recursive: true, force: true })
  // What the compiler says of an error, it says on its standard output.
  npm(['run', '--silent', 'build'], { cwd: ROOT, stdio: ['ignore', 2, 'inherit'] })
}

/** What is missing for a registry, each as a sentence. */
function faultsOf({ folder, manifest }) {
  const name = manifest.name ?? folder
  return [
    ...FILES.filter((file) => !existsSync(join(folder, file))).map((file) => `${name} has no ${file}.`),
    ...FIELDS.filter((field) => manifest[field] === undefined).map(
      (field) => `${name} has no field "${field}".`,
    ),
    ...(manifest.name?.startsWith('@') && manifest.publishConfig?.access !== 'public'
      ? [`${name} would be published for its owner alone: "publishConfig" lacks "access": "public".`]
      : []),
    ...Object.entries(manifest.dependencies ?? {})
      .filter(([other, range]) => other.startsWith('@annals/') && range.replace('^', '') !== version)
      .map(([other, range]) => `${name} depends on ${other} ${range}, not ${version}.`),
    ...(manifest.version === version ? [] : [`${name} has version ${manifest.version}, not ${version}.`]),
  ]
}

/** All at once: npm takes longer to start than to pack. */
function pack(folders) {
  const args = ['pack', ...folders, '--silent', '--json', '--ignore-scripts', '--pack-destination', OUTPUT]
  const answer = npm(args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
  return [Object.values(JSON.parse(answer))].flat().map(({ filename, size }) => {
    report(filename, size)
    return filename
  })
}

/** Python is not needed for the rest, so a machine without it packs the rest. */
function wheel() {
  const args = ['-m', 'pip', 'wheel', '--quiet', '--no-deps', '--wheel-dir', OUTPUT, './python']
  const { status } = spawnSync('python3', args, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] })
  if (status !== 0) {
    process.stderr.write('The wheel was not built: it needs python3 with pip.\n')
    process.exitCode = 1
    return
  }
  for (const file of readdirSync(OUTPUT).filter((name) => name.endsWith('.whl')))
    report(file, statSync(join(OUTPUT, file)).size)
}

function report(file, bytes) {
  process.stdout.write(`${(bytes / 1024).toFixed(0).padStart(6)} kB  ${file}\n`)
}
