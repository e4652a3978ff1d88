import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { expect, it } from 'vitest'

const PACKAGES = fileURLToPath(new URL('../..', import.meta.url))
/** What takes a command longer to load than to run. */
const HEAVY =
  /^(fastify|@fastify\/|@scalar\/|pg|pino|gpt-tokenizer|#?typebox|prom-client|string-width|wrap-ansi)/

it('help and completion load no part of the service: commands import what they work with when they run', () => {
  const heavy: string[] = []
  const seen = new Set<string>()
  const follow = (path: string) => {
    if (seen.has(path)) return
    seen.add(path)
    for (const specifier of importsOf(path)) {
      if (HEAVY.test(specifier)) heavy.push(`${relative(PACKAGES, path)} imports ${specifier}`)
      const name = specifier.replace(/\.js$/, '.ts')
      const [, ofServer] = /^annals\/dist\/(.+)/.exec(name) ?? []
      const ofOthers = ofServer
        ? `server/src/${ofServer}`
        : name === '@annals/archive' && 'archive/src/index.ts'
      const file = ofOthers ? join(PACKAGES, ofOthers) : join(dirname(path), name)
      if ((ofOthers || name.startsWith('.')) && existsSync(file)) follow(file)
    }
  }
  follow(join(PACKAGES, 'cli/src/annals.ts'))
  expect(seen.size).toBeGreaterThan(20)
  // Import it in the command's action, as the others do.
  expect(heavy).toEqual([])
})

/** What a module loads before it does anything: neither types nor what `import()` loads later. */
function importsOf(path: string): string[] {
  const source = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest)
  return source.statements.flatMap((statement) => {
    const specifier =
      ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement)
        ? statement.moduleSpecifier
        : undefined
    const is_type =
      ts.isImportDeclaration(statement) && statement.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword
    return specifier && ts.isStringLiteral(specifier) && !is_type ? [specifier.text] : []
  })
}
