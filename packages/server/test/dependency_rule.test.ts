import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { findCircle, importsOf, ownImports } from './source_imports.ts'

const SRC = fileURLToPath(new URL('../src', import.meta.url))

/**
 * The folders of src, and the files that stand there by themselves, in the order of the tree: each may import only what
 * stands before it.
 */
const TREE = `
  limits errors ids version
  contract configuration fairness json tracing outgoing
  postgres
  lists threads
  lifecycle changes http
  module
  users blobs projects log search webhooks metrics
  sessions learning mcp console_api
  service
  cluster
`
  .trim()
  .split(/\s+/)

/** What is still untied: imports that run back up the tree. This list only gets shorter. */
const BACK = new Set<string>([
  'blobs → learning',
  'blobs → log',
  'blobs → projects',
  'blobs → service',
  'console_api → service',
  'http → blobs',
  'http → console_api',
  'http → learning',
  'http → log',
  'http → module',
  'http → projects',
  'http → service',
  'http → sessions',
  'http → webhooks',
  'log → service',
  'metrics → service',
  'module → service',
  'projects → console_api',
  'projects → log',
  'projects → service',
  'threads → http',
  'threads → service',
  'tracing → log',
])

/** Packages that belong to one concern, and the layers that may know of it. */
const MAY_USE_PACKAGE: Array<{ package: RegExp; layers: string[] }> = [
  { package: /^(fastify|@fastify\/|@scalar\/)/, layers: TREE.slice(TREE.indexOf('http')) },
  { package: /^pg$/, layers: ['postgres'] },
  { package: /^@opentelemetry\//, layers: ['tracing'] },
  { package: /^sql-template-tag$/, layers: TREE.slice(TREE.indexOf('postgres')) },
  { package: /^(commander|@annals\/(archive|client|cli))$/, layers: [] },
  { package: /^@annals\/mcp/, layers: ['mcp'] },
  // It is `#typebox`, which is one file instead of hundreds.
  { package: /^typebox/, layers: [] },
]

/** What only service/ constructs, and where else it may be named: it is wrapped there. */
const CONSTRUCTED = [
  { construction: /\bnew Appender\b/, also: [] },
  { construction: /\bnew TokenDirectory\b/, also: [] },
  { construction: /\bnew Metrics\b/, also: [] },
  { construction: /\bnew Feed\b/, also: [] },
  { construction: /\bnew Changes\b/, also: [] },
  { construction: /\bnew PostgresBell\b/, also: [] },
  { construction: /\bnew Heartbeat\b/, also: [] },
  { construction: /(?<!function )\bopenDatabase\(/, also: [] },
  { construction: /(?<!function )\bbuildApp\(/, also: [] },
  { construction: /(?<!function )\bstartEmbeddedPostgres\(/, also: ['postgres/connection_target.ts'] },
]

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .sort()
  .map((name) => {
    const text = readFileSync(join(SRC, name), 'utf8')
    return { name, text, source: ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true) }
  })

describe('the dependency rule', () => {
  it('knows every layer', () => {
    expect(files.map(({ name }) => layerOf(name)).filter((layer) => !TREE.includes(layer))).toEqual([])
  })

  it('lets each layer import only those before it in the tree', () => {
    const wrong = files.flatMap(({ name, source }) =>
      ownImports(name, source)
        .filter((imported) => TREE.indexOf(layerOf(imported)) > TREE.indexOf(layerOf(name)))
        .map((imported) => `${layerOf(name)} → ${layerOf(imported)}`),
    )
    expect([...new Set(wrong)].sort()).toEqual([...BACK].sort())
  })

  it('has no circle between files, imports of types included', () => {
    const imports = new Map(files.map(({ name, source }) => [name, ownImports(name, source)]))
    expect(findCircle(imports)).toBeUndefined()
  })

  it('names learning spaces in few files outside their folder: what holds for every module is said once', () => {
    const naming = files.filter(
      ({ name, text }) => !name.startsWith('learning/') && text.includes('learning_space'),
    )
    expect(naming.length, naming.map(({ name }) => name).join(', ')).toBeLessThanOrEqual(8)
  })

  it('keeps each package to the layer that it is for', () => {
    const wrong = files.flatMap(({ name, source }) =>
      importsOf(source)
        .filter((specifier) =>
          MAY_USE_PACKAGE.some(
            (rule) => rule.package.test(specifier) && !rule.layers.includes(layerOf(name)),
          ),
        )
        .map((specifier) => `${name} imports ${specifier}`),
    )
    expect(wrong).toEqual([])
  })

  it('constructs only in service/', () => {
    const wrong = files.flatMap(({ name, text }) =>
      CONSTRUCTED.filter(
        ({ construction, also }) =>
          construction.test(text) && layerOf(name) !== 'service' && !(also as string[]).includes(name),
      ).map(({ construction }) => `${name} contains ${construction.source}`),
    )
    expect(wrong).toEqual([])
  })
})

/** The layer of a file: its directory under src, or its own name if it stands there by itself. */
function layerOf(name: string): string {
  return name.includes('/') ? name.slice(0, name.indexOf('/')) : basename(name, '.ts')
}
