import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const PLACES = ['packages', 'bench', 'examples', 'fuzz', 'lab', 'python', 'siege', 'tests', 'torture']
const GENERATED = /\.gen\.|python\/src\/annals\/types\.py$/
const FILE_LINES_MAX = 500
const FUNCTION_LINES_MAX = 70
const ADAPTER_LINES_MAX = 900
const KIT_LINES_MAX = 550
/** The files of an adapter: a package, or modules of the Python package, those aside that are generated from them. */
const ADAPTERS = [
  /^packages\/(adapters\/[^/]+)\/src\//,
  /^(python)\/src\/annals\/(?:_async\/)?_?(adk|claude|langgraph|openai_agents|pydantic_ai)[_.]/,
]

/** What somebody wrote: not what was installed, built, or generated. */
const files = PLACES.flatMap((place) => filesBelow(join(ROOT, place)))
  .map((path) => ({ name: relative(ROOT, path), text: readFileSync(path, 'utf8') }))
  .sort((a, b) => (a.name < b.name ? -1 : 1))

/** Files of tests aside: the function around them is a list of sentences. */
const programs = files
  .filter(({ name }) => /\.tsx?$/.test(name) && !name.endsWith('.test.ts'))
  // Half of the files have no room for a long function: they need not be parsed.
  .filter(({ text }) => linesIn(text) > FUNCTION_LINES_MAX)
  .map(({ name, text }) => ({ name, source: ts.createSourceFile(name, text, ts.ScriptTarget.Latest) }))

describe('the sizes and names of source files', () => {
  it.each([
    'packages/console/src',
    'packages/messages/src',
    'packages/server/src',
    'tests/acceptance',
    'bench',
    'python',
    'siege',
    'torture',
  ])('are looked at in %s', (directory) => {
    expect(files.filter(({ name }) => name.startsWith(`${directory}/`)).length).toBeGreaterThan(9)
  })

  it(`has no file over ${FILE_LINES_MAX} lines`, () => {
    const long = files
      .map(({ name, text }) => ({ name, lines: linesIn(text) }))
      .filter(({ lines }) => lines > FILE_LINES_MAX)
      .map(({ name, lines }) => `${name} has ${lines} lines`)
    expect(long).toEqual([])
  })

  it(`has no function over ${FUNCTION_LINES_MAX} lines, the schemas of routes and the markup of views aside`, () => {
    const long = programs.flatMap(({ name, source }) =>
      functionsIn(source)
        .map((found) => ({ place: `${name}: ${nameOf(found, source)}`, lines: linesOf(found, source) }))
        .filter(({ lines }) => lines > FUNCTION_LINES_MAX)
        .map(({ place, lines }) => `${place} has ${lines} lines`),
    )
    expect(long).toEqual([])
  })

  it(`has no adapter over ${ADAPTER_LINES_MAX} lines, and no kit of theirs over ${KIT_LINES_MAX}`, () => {
    const sizes = new Map<string, number>()
    for (const { name, text } of files) {
      const adapter = ADAPTERS.flatMap((pattern) => pattern.exec(name)?.slice(1).join(' ') ?? [])[0]
      if (adapter) sizes.set(adapter, (sizes.get(adapter) ?? 0) + linesIn(text))
    }
    expect(sizes.size).toBe(12)
    const most = (name: string) => (name.endsWith('/kit') ? KIT_LINES_MAX : ADAPTER_LINES_MAX)
    expect([...sizes].filter(([name, lines]) => lines > most(name))).toEqual([])
  })

  it('names no file after what it lacks a name for', () => {
    const vague = /utils?|helpers?|manager|common/i
    expect(files.map(({ name }) => name).filter((name) => vague.test(name))).toEqual([])
  })
})

function filesBelow(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name)
    if (entry.isDirectory())
      return ['node_modules', 'dist', 'venv'].includes(entry.name) ? [] : filesBelow(path)
    return /\.(?:tsx?|js|mjs|css|py)$/.test(entry.name) && !GENERATED.test(path) ? [path] : []
  })
}

function linesIn(text: string): number {
  return text.trimEnd().split('\n').length
}

function functionsIn(source: ts.SourceFile): ts.FunctionLikeDeclaration[] {
  const found: ts.FunctionLikeDeclaration[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body) found.push(node as ts.FunctionLikeDeclaration)
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

function nameOf(node: ts.FunctionLikeDeclaration, source: ts.SourceFile): string {
  return node.name?.getText(source) ?? 'an anonymous function'
}

/**
 * Lines of a function. A route's schema stands where the route is registered, and what a view looks like stands
 * where it is returned, and an operation where it is added. They are declarations, not something that the function
 * does: their lines do not count. The functions within them are looked at by themselves.
 */
function linesOf(node: ts.Node, source: ts.SourceFile): number {
  const span = (part: ts.Node) =>
    source.getLineAndCharacterOfPosition(part.end).line -
    source.getLineAndCharacterOfPosition(part.getStart(source)).line +
    1
  let lines = span(node)
  const visit = (inner: ts.Node): void => {
    if (isSchema(inner, source) || isMarkup(inner)) lines -= span(inner)
    else ts.forEachChild(inner, visit)
  }
  visit(node)
  return lines
}

function isSchema(node: ts.Node, source: ts.SourceFile): boolean {
  if (ts.isObjectLiteralExpression(node))
    return node.properties.some((property) => property.name?.getText(source) === 'call')
  return ts.isPropertyAssignment(node) && node.name.getText(source) === 'schema'
}

function isMarkup(node: ts.Node): boolean {
  return ts.isJsxElement(node) || ts.isJsxSelfClosingElement(node) || ts.isJsxFragment(node)
}
