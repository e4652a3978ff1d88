import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { ITEM_VECTORS } from './response_items.js'
import { compiled } from './sdk_samples.js'

/** The SDK's types of items by the side on which they stand. */
const TYPES = { input: 'ResponseInputItem', output: 'ResponseOutputItem' } as const
const SIDES = ['input', 'output'] as const

const checks = SIDES.flatMap((side) =>
  ITEM_VECTORS.filter(({ of }) => of.includes(side)).map(({ item, name }) => ({
    name: `${side}: ${name}`,
    line: `${JSON.stringify(item)} satisfies ${TYPES[side]},`,
  })),
)
/** The vectors as items of the SDK's types, one a line. */
const source = [
  "import type { ResponseInputItem, ResponseOutputItem } from 'openai/resources/responses/responses'",
  'export const items = [',
  ...checks.map(({ line }) => line),
  ']',
  ...SIDES.map((side) => `export type ${side} = Exclude<${TYPES[side]}['type'], null | undefined>`),
].join('\n')

describe('the items of the OpenAI SDK', { timeout: 60_000 }, () => {
  const { program, file } = compiled(source)

  it('each have a vector: a type that the SDK learns needs one, and a place in the reader', () => {
    const checker = program.getTypeChecker()
    for (const side of SIDES) {
      const alias = file.statements.find(
        (one): one is ts.TypeAliasDeclaration => ts.isTypeAliasDeclaration(one) && one.name.text === side,
      )!
      const union = checker.getTypeAtLocation(alias) as ts.UnionType
      const known = union.types.map((type) => (type as ts.StringLiteralType).value)
      expect(known.length).toBeGreaterThan(20)
      const shown = ITEM_VECTORS.filter(({ of }) => of.includes(side)).map(({ item }) => item.type)
      expect(known.filter((type) => !shown.includes(type))).toEqual([])
    }
  })

  it('have the types that the vectors show', () => {
    const diagnostics = program.getSemanticDiagnostics(file).map(({ start, messageText }) => {
      const line = file.getLineAndCharacterOfPosition(start!).line
      return `${checks[line - 2]?.name}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`
    })
    expect(diagnostics).toEqual([])
  })
})
