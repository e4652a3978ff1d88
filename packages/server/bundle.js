import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, isAbsolute, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

/**
 * Makes what runs: dist/bundle has the hundreds of modules of this package and of its siblings in a few files, and
 * dist/typebox.js has TypeBox's 350. Finding and reading each by itself takes most of a start. Packages of others
 * stay where npm installs them, for audits to see.
 */
const HERE = fileURLToPath(new URL('.', import.meta.url))
const DIST = join(HERE, 'dist')
const BUNDLE = join(DIST, 'bundle')
/** What Node is told to run, from `dist`: the command line, its threads, and what an ending process leaves behind. */
const PROGRAMS = [
  '../../cli/dist/annals.js',
  'service/thread.js',
  'mcp/mcp_thread.js',
  'otel/otel_thread.js',
  '../../embedded-postgres/dist/stop_unused.js',
]

/** How long a file stays that no build has made since. */
const KEPT_MS = 7 * 24 * 60 * 60 * 1_000

/** Modules that require a package, by their ids. */
const REQUIRED = new Map()

// The licence goes wherever the code goes.
const licence = readFileSync(join(folderOf('typebox'), 'license'), 'utf8').trim()
await build(
  DIST,
  { input: { typebox: join(HERE, '../kits/typebox/index.js') } },
  { banner: `/*! typebox\n\n${licence}\n*/` },
)

const input = Object.fromEntries(PROGRAMS.map((path) => [basename(path, '.js'), join(DIST, path)]))
const plugins = [{ name: 'packages', resolveId: resolvePackage, load }]
const options = { chunkFileNames: '[name]-[hash].js', sourcemap: true }
const files = await build(BUNDLE, { input, plugins }, options)
for (const name of readdirSync(BUNDLE).filter((name) => !files.includes(name))) {
  const path = join(BUNDLE, name)
  // A service that has run since an earlier build may still want to load it.
  if (statSync(path).mtimeMs < Date.now() - KEPT_MS) rmSync(path)
}

// What the kits read beside their code.
const CITUS = join(HERE, '../kits/src/postgres/citus')
mkdirSync(join(DIST, 'citus'), { recursive: true })
for (const name of readdirSync(CITUS).filter((name) => name.endsWith('.sql')))
  put(join(DIST, 'citus', name), readFileSync(join(CITUS, name), 'utf8'))

// What the service answers at /openapi.json.
const { describeApi } = await import('../openapi/dist/describe_api.js')
put(join(DIST, 'openapi.json'), JSON.stringify(await describeApi()))

/** Packages stay outside. To import one of CommonJS, Node parses all of it for names: to require it is faster. */
function resolvePackage(name, importer) {
  if (!importer || /^(?:[./\0]|@?annals\/)/.test(name)) return null
  const id = `\0required:${name}`
  if (!isAbsolute(importer) || !isCommonJs(name, importer)) return { id: name, external: true }
  REQUIRED.set(id, `module.exports = require(${JSON.stringify(name)})`)
  return id
}

/** Compiled files come with their maps, so that the bundle's lead to the TypeScript. */
function load(id) {
  if (REQUIRED.has(id)) return REQUIRED.get(id)
  if (!existsSync(`${id}.map`)) return null
  return { code: readFileSync(id, 'utf8'), map: JSON.parse(readFileSync(`${id}.map`, 'utf8')) }
}

function isCommonJs(name, importer) {
  try {
    const path = createRequire(importer).resolve(name)
    return /\.c?js$/.test(path) && (path.endsWith('.cjs') || manifestOf(path).type !== 'module')
  } catch {
    return false // A peer that is not installed, or a package that can only be imported.
  }
}

/** The package.json that says what kind of module a file is. */
function manifestOf(path) {
  const file = join(dirname(path), 'package.json')
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : manifestOf(dirname(path))
}

/** Builds files, of which those are written that have changed, each at once: tests and services may be running from the others. */
async function build(folder, options, outputOptions) {
  const bundle = await rolldown({ platform: 'node', logLevel: 'warn', ...options })
  const { output } = await bundle.generate({ format: 'esm', entryFileNames: '[name].js', ...outputOptions })
  await bundle.close()
  mkdirSync(folder, { recursive: true })
  for (const { fileName, code, source } of output) put(join(folder, fileName), code ?? withoutSources(source))
  return output.map(({ fileName }) => fileName)
}

/** A map names the sources: who has the repository has them, and the package stays small. */
function withoutSources(map) {
  const { sourcesContent, ...rest } = JSON.parse(map)
  return JSON.stringify(rest)
}

function put(path, text) {
  if (existsSync(path) && readFileSync(path, 'utf8') === text) return utimesSync(path, new Date(), new Date())
  writeFileSync(`${path}.${process.pid}`, text)
  renameSync(`${path}.${process.pid}`, path)
}

/** Its package.json and licence are none of what a package exports. */
function folderOf(name) {
  const paths = createRequire(import.meta.url).resolve.paths(name)
  return paths.map((path) => join(path, name)).find(existsSync)
}
