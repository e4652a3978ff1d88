import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { findCircle, importsOf, ownImports } from './source_imports.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const KITS = fileURLToPath(new URL('../../kits/src', import.meta.url))
const SRC = fileURLToPath(new URL('../src', import.meta.url))

/**
 * The folders of `packages/kits/src`, down to `module`, and of `packages/server/src`, and the files that stand there by
 * themselves, in the order of the tree: each may import only what stands before it. A module that no other builds on need not be here: it stands right before `service`.
 */
const TREE = `
  limits errors ids hmac version
  contract configuration fairness tracing outgoing workers
  postgres
  lists threads
  lifecycle changes http metrics
  module
  users projects people access audit blobs proof log redaction search tools runs webhooks
  sessions learning otel exports mcp console_api
  service
`
  .trim()
  .split(/\s+/)

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

/** What is constructed only where modules open, or where the service does. */
const CONSTRUCTED = [
  /\bnew Appender\b/,
  /\bnew TokenDirectory\b/,
  /\bnew Metrics\b/,
  /\bnew Feed\b/,
  /\bnew Changes\b/,
  /\bnew PostgresBell\b/,
  /\bnew Heartbeat\b/,
  /(?<!function )\bopenDatabase\(/,
  /(?<!function )\bbuildApp\(/,
  /(?<!function )\bstartEmbeddedPostgres\(/,
]
const CONSTRUCTS = /^service\/|\/module\.ts$|^postgres\/connection_target\.ts$/

const files = [KITS, SRC].flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .sort()
    .map((name) => ({ name, text: readFileSync(join(folder, name), 'utf8') })),
)

describe('the dependency rule', () => {
  it('knows every layer, but for modules that no other builds on', () => {
    const unknown = new Set(files.map(({ name }) => layerOf(name)).filter((layer) => !TREE.includes(layer)))
    expect([...unknown].filter((layer) => !files.some(({ name }) => name === `${layer}/module.ts`))).toEqual(
      [],
    )
  })

  it('lets each layer import only those before it in the tree', () => {
    const wrong = files.flatMap(({ name, text }) =>
      [...ownImports(name, text), ...kitsOf(text)]
        .filter((imported) => layerOf(imported) !== layerOf(name) && placeOf(imported) >= placeOf(name))
        .map((imported) => `${name} imports ${imported}`),
    )
    expect([...new Set(wrong)]).toEqual([])
  })

  it('names learning spaces in few files outside their folder: what holds for every module is said once', () => {
    const naming = files.filter(
      ({ name, text }) => !name.startsWith('learning/') && text.includes('learning_space'),
    )
    expect(naming.length, naming.map(({ name }) => name).join(', ')).toBeLessThanOrEqual(8)
  })

  it('keeps each package to the layer that it is for', () => {
    const wrong = files.flatMap(({ name, text }) =>
      importsOf(text)
        .filter((specifier) =>
          MAY_USE_PACKAGE.some(
            (rule) => rule.package.test(specifier) && !rule.layers.includes(layerOf(name)),
          ),
        )
        .map((specifier) => `${name} imports ${specifier}`),
    )
    expect(wrong).toEqual([])
  })

  it('constructs only in service/ and where a module opens itself', () => {
    const wrong = files
      .filter(({ name }) => !CONSTRUCTS.test(name))
      .flatMap(({ name, text }) =>
        CONSTRUCTED.filter((construction) => construction.test(text)).map(
          ({ source }) => `${name} contains ${source}`,
        ),
      )
    expect(wrong).toEqual([])
  })
})

describe('the repository', () => {
  it('has no circle between files, imports of types included', () => {
    const imports = new Map(
      [...sourcesOfRepository()].map((name) => [
        name,
        ownImports(name, readFileSync(join(ROOT, name), 'utf8')),
      ]),
    )
    for (const tree of ['packages/console/src', 'bench', 'torture', 'siege'])
      expect(
        [...imports.keys()].some((name) => name.startsWith(`${tree}/`)),
        tree,
      ).toBe(true)
    expect(findCircle(imports)).toBeUndefined()
  })
})

/** The files of the kits that a file of the server imports. */
function kitsOf(text: string): string[] {
  return importsOf(text).flatMap((specifier) => /^@annals\/kits\/(.*)\.js$/.exec(specifier)?.[1] ?? [])
}

/** All TypeScript files, as names below the root. */
function* sourcesOfRepository(folder = ''): Generator<string> {
  for (const entry of readdirSync(join(ROOT, folder), { withFileTypes: true })) {
    const name = join(folder, entry.name)
    if (entry.isDirectory()) {
      if (!/^(\..*|dist|node_modules)$/.test(entry.name)) yield* sourcesOfRepository(name)
    } else if (/(?<!\.d)\.tsx?$/.test(entry.name)) yield name
  }
}

/** The place of a file's layer in the tree. */
function placeOf(name: string): number {
  const place = TREE.indexOf(layerOf(name))
  return place === -1 ? TREE.indexOf('service') - 0.5 : place
}

/** The layer of a file: its directory under src, or its own name if it stands there by itself. */
function layerOf(name: string): string {
  return name.includes('/') ? name.slice(0, name.indexOf('/')) : basename(name, '.ts')
}
