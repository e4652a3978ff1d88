import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { findCircle, importsOf, ownImports } from './source_imports.ts'

const SRC = fileURLToPath(new URL('../src', import.meta.url))

/** What stands below everything else: facts of the product, and what knows nothing of it. */
const BASICS = ['errors', 'ids', 'limits', 'version']
/** What serves any table or request and knows none of them. */
const TOOLS = ['configuration', 'contract', 'fairness', 'json', 'outgoing', 'postgres', ...BASICS]

/**
 * The layers, from the bottom up, and which others each may import. A layer is a directory of src, a file that
 * stands there by itself, or, in any directory, the files of one kind: `_routes` is HTTP and `_schema` is contract.
 * So a module's rules and SQL know nothing of HTTP, though its routes lie beside them.
 */
const MAY_IMPORT: Record<string, string[]> = {
  errors: BASICS,
  ids: BASICS,
  limits: BASICS,
  version: BASICS,
  configuration: BASICS,
  contract: BASICS,
  schema: ['contract', ...BASICS],
  json: BASICS,
  fairness: BASICS,
  outgoing: BASICS,
  postgres: ['configuration', 'fairness', ...BASICS],
  lists: TOOLS,
  // What the life of tables is made of; it knows no module but by what each says of itself.
  lifecycle: ['lists', ...TOOLS],
  changes: ['lists', ...TOOLS],
  log: ['changes', 'lists', ...TOOLS],
  projects: ['changes', 'lists', 'lifecycle', 'log', ...TOOLS],
  users: ['lists', 'lifecycle', ...TOOLS],
  blobs: ['lists', 'lifecycle', ...TOOLS],
  sessions: ['changes', 'lists', 'lifecycle', 'log', 'projects', 'users', ...TOOLS],
  learning: ['blobs', 'changes', 'lists', 'lifecycle', 'log', 'users', ...TOOLS],
  webhooks: ['changes', 'lists', 'log', ...TOOLS],
  console_api: ['lists', 'projects', 'sessions', 'users', ...TOOLS],
  search: ['changes', 'lists', 'log', ...TOOLS],
  doctor: TOOLS,
  metrics: ['changes', 'log', ...TOOLS],
  tracing: ['log', ...BASICS],
  // Routes that every service has, beside those of the modules.
  fixed_routes: ['http', 'schema', 'console_api', 'metrics', 'log', 'projects', 'sessions', ...TOOLS],
  http: [
    'blobs',
    'changes',
    'fixed_routes',
    'schema',
    'metrics',
    'tracing',
    'lifecycle',
    'log',
    'projects',
    'lists',
    ...TOOLS,
  ],
  routes: [
    'blobs',
    'http',
    'schema',
    'lifecycle',
    'console_api',
    'learning',
    'log',
    'projects',
    'search',
    'sessions',
    'users',
    'webhooks',
    ...TOOLS,
  ],
  // The object that a module is. Its routes are loaded by import(), so that commands do without HTTP.
  module: [
    'blobs',
    'changes',
    'http',
    'lifecycle',
    'learning',
    'log',
    'projects',
    'routes',
    'search',
    'sessions',
    'users',
    'webhooks',
    ...TOOLS,
  ],
  cluster: ['service', ...TOOLS],
  service: [
    'changes',
    ...[
      'blobs',
      'module',
      'http',
      'metrics',
      'tracing',
      'log',
      'lifecycle',
      'projects',
      'search',
      'sessions',
      'console_api',
      'webhooks',
    ],
    ...TOOLS,
  ],
}

/** Packages that belong to one concern, and the layers that may know of it. */
const MAY_USE_PACKAGE: Array<{ package: RegExp; layers: string[] }> = [
  { package: /^(fastify|@fastify\/|@scalar\/)/, layers: ['http', 'routes', 'fixed_routes'] },
  { package: /^pg$/, layers: ['postgres'] },
  { package: /^@opentelemetry\//, layers: ['tracing'] },
  { package: /^sql-template-tag$/, layers: ['queries'] },
  { package: /^(commander|@annals\/client|@annals\/cli)$/, layers: [] },
  { package: /^@annals\/mcp/, layers: ['http'] },
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
    expect(files.map(({ name }) => layerOf(name)).filter((layer) => !(layer in MAY_IMPORT))).toEqual([])
  })

  it('lets each layer import only those below it', () => {
    const wrong = files.flatMap(({ name, source }) =>
      ownImports(name, source)
        .filter((imported) => !mayImport(layerOf(name), layerOf(imported)))
        .map((imported) => `${name} imports ${imported}`),
    )
    expect(wrong).toEqual([])
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
            (rule) =>
              rule.package.test(specifier) &&
              !rule.layers.includes(name.endsWith('_queries.ts') ? 'queries' : layerOf(name)),
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

/** The layer of a file: its kind, its directory under src, or its own name if it stands there by itself. */
function layerOf(name: string): string {
  if (/^(console_api|metrics)\/\w+_routes\.ts$/.test(name)) return 'fixed_routes'
  if (name.endsWith('_routes.ts') && !name.startsWith('http/')) return 'routes'
  if (name.endsWith('_schema.ts')) return 'schema'
  if (name.endsWith('/module.ts') && !name.startsWith('http/')) return 'module'
  return name.includes('/') ? name.slice(0, name.indexOf('/')) : basename(name, '.ts')
}

function mayImport(layer: string, imported: string): boolean {
  return layer === imported || (MAY_IMPORT[layer]?.includes(imported) ?? false)
}
