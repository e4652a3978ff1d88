import { dirname, join, relative } from 'node:path'
import ts from 'typescript'

/** What a file imports, at its top or later by `import()`, except what `skip` says. */
export function importsOf(source: ts.SourceFile, skip: (node: ts.Node) => boolean = () => false): string[] {
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    if (skip(node)) return
    const specifier =
      ts.isImportDeclaration(node) || ts.isExportDeclaration(node)
        ? node.moduleSpecifier
        : ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword
          ? node.arguments[0]
          : ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)
            ? node.argument.literal
            : undefined
    if (specifier && ts.isStringLiteral(specifier)) found.push(specifier.text)
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

/** Whether an import leaves nothing behind when it is compiled. */
export function isTypeOnly(node: ts.Node): boolean {
  if (ts.isImportTypeNode(node)) return true
  if (!ts.isImportDeclaration(node) || !node.importClause) return false
  if (node.importClause.phaseModifier === ts.SyntaxKind.TypeKeyword) return true
  const { name, namedBindings } = node.importClause
  return (
    !name &&
    !!namedBindings &&
    ts.isNamedImports(namedBindings) &&
    namedBindings.elements.every((one) => one.isTypeOnly)
  )
}

/** The files of ours that a file imports, as names below src. */
export function ownImports(name: string, source: ts.SourceFile, skip?: (node: ts.Node) => boolean): string[] {
  return importsOf(source, skip)
    .filter((specifier) => specifier.startsWith('.'))
    .map((specifier) => relative('.', join(dirname(name), specifier)).replace(/\.js$/, '.ts'))
}

/** A circle of imports, as the files on it; undefined when there is none. */
export function findCircle(imports: Map<string, string[]>): string[] | undefined {
  const done = new Set<string>()
  const follow = (name: string, path: string[]): string[] | undefined => {
    if (path.includes(name)) return [...path.slice(path.indexOf(name)), name]
    if (done.has(name)) return undefined
    for (const imported of imports.get(name) ?? []) {
      const circle = follow(imported, [...path, name])
      if (circle) return circle
    }
    done.add(name)
    return undefined
  }
  for (const name of imports.keys()) {
    const circle = follow(name, [])
    if (circle) return circle
  }
  return undefined
}
