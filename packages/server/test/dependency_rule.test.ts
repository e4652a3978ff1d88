import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { findCircle, importsOf, isTypeOnly, ownImports } from './source_imports.ts'

const SRC = fileURLToPath(new URL('../src', import.meta.url))

/** What stands below everything else: facts of the product, and what knows nothing of it. */
const BASICS = ['errors', 'fair_queue', 'fair_semaphore', 'ids', 'limits', 'log_output', 'version']

/**
 * The layers, from the bottom up, and which others each may import. A layer is a directory of src, or a file
 * that stands there by itself. Data flows one way: HTTP → log and resources → queries → database.
 */
const MAY_IMPORT: Record<string, string[]> = {
  errors: BASICS,
  fair_queue: BASICS,
  fair_semaphore: BASICS,
  ids: BASICS,
  limits: BASICS,
  log_output: BASICS,
  version: BASICS,
  setting: BASICS,
  rate_settings: ['setting', ...BASICS],
  settings: ['setting', 'rate_settings', ...BASICS],
  config: ['setting', 'settings', ...BASICS],
  exposure: ['config', ...BASICS],
  contract: BASICS,
  json: BASICS,
  messages: BASICS,
  database: ['config', ...BASICS],
  tokens: ['database', ...BASICS],
  memory: BASICS,
  log: ['database', 'json', 'messages', ...BASICS],
  resources: ['log', 'tokens', 'database', 'json', 'messages', ...BASICS],
  verify: ['database', ...BASICS],
  doctor: ['database', 'config', 'exposure', ...BASICS],
  transfer: ['log', 'resources', 'database', 'json', 'messages', ...BASICS],
  metrics: ['log', 'memory', 'database', ...BASICS],
  tracing: ['log', ...BASICS],
  http: [
    'memory',
    'metrics',
    'tracing',
    'log',
    'resources',
    'tokens',
    'database',
    'contract',
    'json',
    'messages',
    'config',
    'exposure',
    ...BASICS,
  ],
  workers: BASICS,
  main: [
    'memory',
    'parts',
    'prepare_database',
    'http',
    'metrics',
    'tracing',
    'log',
    'resources',
    'tokens',
    'database',
    'config',
    'exposure',
    ...BASICS,
  ],
  parts: [
    'memory',
    'http',
    'metrics',
    'tracing',
    'log',
    'resources',
    'tokens',
    'database',
    'config',
    'exposure',
    ...BASICS,
  ],
  // What a command needs of the service: not HTTP, which takes most of a start to load.
  work_on_database: ['log', 'database', 'config', ...BASICS],
  prepare_database: ['resources', 'database', 'config', 'exposure', ...BASICS],
  cli: [
    'memory',
    'main',
    'work_on_database',
    'prepare_database',
    'workers',
    'transfer',
    'verify',
    'doctor',
    'log',
    'resources',
    'tokens',
    'database',
    'contract',
    'messages',
    'json',
    'config',
    'exposure',
    ...BASICS,
  ],
}

/** Packages that belong to one concern, and the layers that may know of it. */
const MAY_USE_PACKAGE: Array<{ package: RegExp; layers: string[] }> = [
  { package: /^(fastify|@fastify\/|@scalar\/)/, layers: ['http'] },
  { package: /^pg$/, layers: ['database'] },
  { package: /^@opentelemetry\//, layers: ['tracing'] },
  { package: /^sql-template-tag$/, layers: ['database'] },
  { package: /^(commander|@annals\/client)$/, layers: ['cli'] },
  // It is `#typebox`, which is one file instead of hundreds.
  { package: /^typebox/, layers: [] },
]

/** What only main.ts and parts.ts make, and where else it may be named: it is wrapped there, or made for a command. */
const CONSTRUCTED = [
  { construction: /\bnew Appender\b/, also: ['work_on_database.ts'] },
  { construction: /\bnew TokenDirectory\b/, also: [] },
  { construction: /\bnew Metrics\b/, also: [] },
  { construction: /\bnew Feed\b/, also: [] },
  { construction: /\bnew PostgresBell\b/, also: [] },
  { construction: /\bnew Heartbeat\b/, also: [] },
  {
    construction: /(?<!function )\bopenDatabase\(/,
    also: ['work_on_database.ts', 'prepare_database.ts'],
  },
  { construction: /(?<!function )\bbuildApp\(/, also: [] },
  { construction: /(?<!function )\bstartEmbeddedPostgres\(/, also: ['database/connection_target.ts'] },
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

  it('has no circle between files, types aside', () => {
    const imports = new Map(files.map(({ name, source }) => [name, ownImports(name, source, isTypeOnly)]))
    expect(findCircle(imports)).toBeUndefined()
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

  it('constructs only in main.ts and parts.ts, and in what opens a database for commands', () => {
    const wrong = files.flatMap(({ name, text }) =>
      CONSTRUCTED.filter(
        ({ construction, also }) =>
          construction.test(text) &&
          !['main.ts', 'parts.ts'].includes(name) &&
          !(also as string[]).includes(name),
      ).map(({ construction }) => `${name} contains ${construction.source}`),
    )
    expect(wrong).toEqual([])
  })
})

/** The layer of a file: its directory under src, or its own name if it stands there by itself. */
function layerOf(name: string): string {
  return name.includes('/') ? name.slice(0, name.indexOf('/')) : basename(name, '.ts')
}

function mayImport(layer: string, imported: string): boolean {
  return layer === imported || (MAY_IMPORT[layer]?.includes(imported) ?? false)
}
