import { existsSync, readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const PACKAGE = fileURLToPath(new URL('..', import.meta.url))
const BUNDLE = join(PACKAGE, 'dist/bundle')
const IMPORTED = /(?:\bfrom |\bimport |\bimport\(|require\()"([^".][^"]*)"/g

it('what runs needs nothing but its own files, Node, and packages that are installed with it', () => {
  const manifest = JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8'))
  const { dependencies, peerDependencies, imports } = manifest
  const installed = Object.keys({ ...dependencies, ...peerDependencies, ...imports })
  const needed: string[] = []
  // Files of earlier builds stay for a while; these are what the programs load.
  const names = new Set(['annals.js', 'thread.js', 'mcp_thread.js', 'stop_unused.js'])
  for (const name of names) {
    const text = readFileSync(join(BUNDLE, name), 'utf8')
    for (const [, file] of text.matchAll(/"\.\/([^"/]+\.js)"/g))
      if (existsSync(join(BUNDLE, file!))) names.add(file!)
    needed.push(...[...text.matchAll(IMPORTED)].map(([, specifier]) => packageOf(specifier!)))
  }
  expect(names.size).toBeGreaterThan(20)
  expect(needed).toEqual(expect.arrayContaining(['fastify', 'pg', 'zod', '#typebox']))
  const missing = needed.filter((name) => !builtinModules.includes(name.replace('node:', '')))
  expect(new Set(missing.filter((name) => !installed.includes(name)))).toEqual(new Set())
})

function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}
