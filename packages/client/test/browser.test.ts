import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'

const SRC = fileURLToPath(new URL('../src/', import.meta.url))
const FILE_LINES_MAX = 500
/** Names that only Node has. What else is not in a browser, the compiler finds: it is given the web's types alone. */
const NODE_ONLY = /\b(?:process|Buffer|global|require|setImmediate|__dirname|__filename)\b(?!\w*:)/

const files = readdirSync(SRC)
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.gen.ts'))
  .map((name) => ({ name, text: readFileSync(SRC + name, 'utf8') }))

/** A file without its comments, as it is run. */
function codeOf(text: string): string {
  return ts.transpileModule(text, {
    compilerOptions: { target: ts.ScriptTarget.ESNext, removeComments: true },
  }).outputText
}

describe('the source', () => {
  it('imports nothing but itself', () => {
    const imported = files.flatMap(({ text }) =>
      ts.preProcessFile(text).importedFiles.map((file) => file.fileName),
    )
    expect(imported.filter((name) => !/^\.\/\w+(\.gen)?\.js$/.test(name))).toEqual([])
  })

  it('uses nothing that only Node has', () => {
    expect(files.filter(({ text }) => NODE_ONLY.test(codeOf(text))).map(({ name }) => name)).toEqual([])
    const config = readFileSync(new URL('../tsconfig.json', import.meta.url), 'utf8')
    expect(JSON.parse(config).compilerOptions).toMatchObject({ lib: ['ES2023', 'DOM'], types: [] })
  })

  it('needs no package', () => {
    const description = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
    expect(Object.keys(description).filter((field) => /dependencies/i.test(field))).toEqual([])
  })

  it(`has no file over ${FILE_LINES_MAX} lines`, () => {
    const long = files.filter(({ text }) => text.split('\n').length > FILE_LINES_MAX + 1)
    expect(long.map(({ name }) => name)).toEqual([])
  })
})
