import { existsSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/*
 * Removes what was compiled from sources that are gone: TypeScript leaves it, and it would be imported or packed.
 * `node .ci/remove_stale_output.js [<root>]`, as each build does.
 */
const ROOT = resolve(process.argv[2] ?? join(dirname(fileURLToPath(import.meta.url)), '..'))
/** What TypeScript writes for one source. Other things in `dist` have no declarations beside them. */
const DECLARATION = '.d.ts'
const OUTPUTS = ['.js', '.js.map', '.d.ts.map', DECLARATION]

for (const folder of ['packages', 'packages/adapters'])
  for (const name of namesIn(join(ROOT, folder))) removeStale(join(ROOT, folder, name))

function removeStale(folder) {
  if (!existsSync(join(folder, 'src'))) return
  const compiled = namesIn(join(folder, 'dist'), true).filter((name) => name.endsWith(DECLARATION))
  for (const stem of compiled.map((name) => name.slice(0, -DECLARATION.length))) {
    if (['.ts', '.tsx'].some((ending) => existsSync(join(folder, 'src', stem + ending)))) continue
    for (const ending of OUTPUTS) rmSync(join(folder, 'dist', stem + ending), { force: true })
  }
}

function namesIn(folder, recursive = false) {
  return existsSync(folder) ? readdirSync(folder, { recursive }) : []
}
