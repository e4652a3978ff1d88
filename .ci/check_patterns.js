/**
 * Looks at every regular expression of the packages' sources (literals, `new RegExp` of a text, and the `pattern`s of
 * schemas) and fails on each that may take more than linear time, as its input is a caller's sooner or later.
 * One that is safe for a reason that the checker cannot see has `recheck: <the reason>` in a comment above it.
 *
 *     node .ci/check_patterns.js [file or directory…]
 *     node .ci/check_patterns.js --keep
 *
 * A verdict takes up to seconds and never changes, so linear_patterns.txt keeps which patterns were found safe, as
 * hashes: only others are looked at. `--keep` writes it again, for the patterns that there are now.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { check } from 'recheck'
import ts from 'typescript'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** A busy machine takes long. */
const CHECK_MS_MAX = 120_000
const KEPT = new URL('linear_patterns.txt', import.meta.url)
const { version } = createRequire(import.meta.url)('recheck/package.json')

/** By these a pattern is kept: another version of the checker looks at all again. */
const hashOf = (pattern) =>
  createHash('sha256').update(`${version} ${pattern}`).digest('base64url').slice(0, 16)

/**
 * What is wrong with the patterns of these files, a sentence each, how many patterns there are, and the hashes of those
 * that are safe.
 */
export async function checkPatterns(paths) {
  const patterns = paths.flatMap((path) => patternsIn(path, readFileSync(path, 'utf8')))
  const kept = new Set(readFileSync(KEPT, 'utf8').split('\n'))
  const safe = new Set()
  const verdicts = new Map()
  const problems = []
  for (const { place, source, flags, excuse } of patterns) {
    if (excuse !== undefined) {
      if (excuse === '') problems.push(`${place}: say after "recheck:" why this is safe`)
      continue
    }
    if (source === undefined) {
      problems.push(`${place}: a pattern that is put together cannot be checked; write it out`)
      continue
    }
    const pattern = `/${source}/${flags}`
    const hash = hashOf(pattern)
    if (!kept.has(hash) && !verdicts.has(pattern)) verdicts.set(pattern, await verdictOn(source, flags))
    const verdict = verdicts.get(pattern)
    if (verdict) problems.push(`${place}: ${pattern} ${verdict}`)
    else safe.add(hash)
  }
  return { count: patterns.length, looked: verdicts.size, problems, safe }
}

async function verdictOn(source, flags) {
  const { status, complexity, attack, error } = await check(source, flags, { timeout: CHECK_MS_MAX })
  if (status === 'safe') return undefined
  if (status === 'vulnerable') return `takes ${complexity.summary} time, on ${attack.pattern}`
  return `could not be checked: ${error?.kind ?? status}`
}

/** The patterns that a source text has; `source` is undefined where it is not known before the program runs. */
export function patternsIn(path, text) {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
  const found = []
  const add = (node, source, flags) => {
    const { line } = file.getLineAndCharacterOfPosition(node.getStart())
    found.push({ place: `${relative(ROOT, path)}:${line + 1}`, source, flags, excuse: excuseOf(node, text) })
  }
  const visit = (node) => {
    if (ts.isRegularExpressionLiteral(node)) {
      const end = node.text.lastIndexOf('/')
      add(node, node.text.slice(1, end), node.text.slice(end + 1))
    } else if ((ts.isNewExpression(node) || ts.isCallExpression(node)) && isRegExp(node.expression)) {
      const [source, flags] = node.arguments ?? []
      if (source && !ts.isRegularExpressionLiteral(source))
        add(node, textOf(source), flags ? textOf(flags) : '')
    } else if (ts.isPropertyAssignment(node) && node.name.getText() === 'pattern') {
      const source = textOf(node.initializer)
      if (source !== undefined) add(node, source, '')
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  return found
}

const isRegExp = (node) => ts.isIdentifier(node) && node.text === 'RegExp'

function textOf(node) {
  return ts.isStringLiteralLike(node) ? node.text : undefined
}

/** The reason given above the statement, member or line that the node stands in. */
function excuseOf(node, text) {
  for (let at = node; at && !ts.isSourceFile(at); at = at.parent) {
    for (const { pos, end } of ts.getLeadingCommentRanges(text, at.getFullStart()) ?? []) {
      const excuse = /\brecheck:([^\n]*)/.exec(text.slice(pos, end))
      if (excuse) return excuse[1].replace('*/', '').trim()
    }
    if (ts.isStatement(at) || ts.isClassElement(at)) return undefined
  }
  return undefined
}

function sourcesBelow(path) {
  if (!statSync(path).isDirectory()) return [path]
  return readdirSync(path).flatMap((name) => {
    const below = join(path, name)
    if (statSync(below).isDirectory()) return sourcesBelow(below)
    return /\.(?:tsx?|js)$/.test(name) ? [below] : []
  })
}

function sourcesOfPackages() {
  const sources = ['packages', 'packages/adapters'].flatMap((parent) =>
    readdirSync(join(ROOT, parent)).map((name) => join(ROOT, parent, name, 'src')),
  )
  return sources.filter((path) => existsSync(path)).flatMap(sourcesBelow)
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const names = process.argv.slice(2)
  const keeps = names[0] === '--keep'
  const given = keeps ? [] : names.flatMap(sourcesBelow)
  const { count, looked, problems, safe } = await checkPatterns(
    given.length > 0 ? given : sourcesOfPackages(),
  )
  for (const problem of problems) console.error(problem)
  console.error(`${count} regular expressions, ${looked} of them new, ${problems.length} found wanting`)
  if (keeps) writeFileSync(KEPT, `${[...safe].sort().join('\n')}\n`)
  else if (given.length === 0 && looked > 0)
    console.error('`npm run patterns -- --keep` keeps what is new and safe.')
  process.exitCode = problems.length > 0 || count === 0 ? 1 : 0
}
