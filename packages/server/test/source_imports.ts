import { dirname, join, relative } from 'node:path'
import ts from 'typescript'

/** What a file imports, types included, at its top or later by `import()`. */
export function importsOf(source: ts.SourceFile): string[] {
  const found: string[] = []
  const visit = (node: ts.Node): void => {
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

/** The files of ours that a file imports, as names below src. */
export function ownImports(name: string, source: ts.SourceFile): string[] {
  return importsOf(source)
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
