import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

/**
 * Builds the page into the server's package, unless what is there was built from the same sources: every
 * `npm start` and `npm test` comes through here.
 */
const HERE = fileURLToPath(new URL('.', import.meta.url))
const OUTPUT = join(HERE, '../server/dist/console')
const DIGEST_FILE = join(OUTPUT, '.digest')
const SOURCES = [
  'index.html',
  'package.json',
  'vite.config.js',
  'build.js',
  'src',
  '../adapters/kit/dist',
  '../client/dist',
  '../importers/dist',
  '../messages/dist',
  '../otel/dist',
  '../../package-lock.json',
]
/** What makes the page and is not in it. */
const BUILDS_ONLY = /^(?:vite|@vitejs\/|@types\/|@annals\/)/
const COMPRESSED = /\.(?:m?js|css|svg)$/

const digest = digestOf(SOURCES.map((source) => join(HERE, source)))
if (!existsSync(DIGEST_FILE) || readFileSync(DIGEST_FILE, 'utf8') !== digest) {
  const { build } = await import('vite')
  await build({ root: HERE, configFile: join(HERE, 'vite.config.js'), logLevel: 'warn' })
  for (const file of filesIn(join(OUTPUT, 'assets')).filter((name) => COMPRESSED.test(name))) compress(file)
  writeFileSync(join(OUTPUT, 'licenses.txt'), licenses())
  writeFileSync(DIGEST_FILE, digest)
}

/** Written beside the file, so that the server has nothing left to do. */
function compress(file) {
  const content = readFileSync(file)
  writeFileSync(
    `${file}.br`,
    brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }),
  )
  writeFileSync(`${file}.gz`, gzipSync(content, { level: 9 }))
}

/** The licences of what is built in, and of what that needs, which go wherever it goes. */
function licenses() {
  const require = createRequire(import.meta.url)
  const manifest = (folder) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const folders = new Map()
  const add = (name) => {
    if (folders.has(name)) return
    const folder = require.resolve
      .paths(name)
      .map((path) => join(path, name))
      .find(existsSync)
    if (!folder)
      throw new Error(`${name} is not in node_modules, which is older than package-lock.json: run npm ci`)
    folders.set(name, folder)
    Object.keys(manifest(folders.get(name)).dependencies ?? {}).forEach(add)
  }
  Object.keys(manifest(HERE).devDependencies)
    .filter((name) => !BUILDS_ONLY.test(name))
    .forEach(add)
  return [...folders]
    .map(([name, folder]) => {
      const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one))
      return `${name}\n\n${file ? readFileSync(join(folder, file), 'utf8') : 'MIT'}\n`
    })
    .join(`\n${'-'.repeat(80)}\n\n`)
}

function digestOf(paths) {
  const hash = createHash('sha256')
  for (const path of paths.flatMap(filesIn))
    hash.update(`${path.slice(HERE.length)}\0`).update(readFileSync(path))
  return hash.digest('hex')
}

function filesIn(path) {
  if (!statSync(path).isDirectory()) return [path]
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== '.tsbuildinfo')
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
}
