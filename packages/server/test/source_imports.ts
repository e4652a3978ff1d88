import { dirname, join, relative } from 'node:path'
import ts from 'typescript'

/** What a file imports, types included, at its top or later by `import()`. */
export function importsOf(text: string): string[] {
  return ts.preProcessFile(text, true, true).importedFiles.map(({ fileName }) => fileName)
}

/** The files of ours that a file imports, as names below the folder that its own name is below. */
export function ownImports(name: string, text: string): string[] {
  return importsOf(text)
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
