import { createHash } from 'node:crypto'
import { existsSync, readFileSync, renameSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Makes one file of typebox, which comes as 350 and as such takes half of a service's start to load. One that was made
 * of the same stays: every `npm start` and `npm test` comes through here.
 */
const HERE = fileURLToPath(new URL('.', import.meta.url))
const OUTPUT = join(HERE, '../dist/typebox.js')
const SOURCES = ['index.js', 'bundle.js', '../../../package-lock.json']

const hash = createHash('sha256')
for (const source of SOURCES) hash.update(readFileSync(join(HERE, source)))
// The licence goes wherever the code goes.
const banner = `/*! typebox, of ${hash.digest('hex')}\n\n${readFileSync(join(folderOf('typebox'), 'license'), 'utf8').trim()}\n*/`

if (!existsSync(OUTPUT) || !readFileSync(OUTPUT, 'utf8').startsWith(banner)) {
  const { build } = await import('rolldown')
  const file = `${OUTPUT}.${process.pid}`
  await build({
    input: join(HERE, 'index.js'),
    platform: 'node',
    output: { file, format: 'esm', banner },
    logLevel: 'warn',
  })
  renameSync(file, OUTPUT)
}

/** Its package.json and licence are none of what a package exports. */
function folderOf(name) {
  const paths = createRequire(import.meta.url).resolve.paths(name)
  return paths.map((path) => join(path, name)).find(existsSync)
}
