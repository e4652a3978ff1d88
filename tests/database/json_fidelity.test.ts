import { isRefusal, readStorable } from '@annals/messages/json'
import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  badNumber,
  badString,
  goodLeaf,
  jsonTree,
  space,
  write,
} from '../../packages/messages/test/json/json_texts.ts'
import { exactJson } from '../harness/exact_json.ts'
import { createTestDatabase, type TestDatabase } from '../harness/test_database.ts'

/** Reasons that are a limit of our own: PostgreSQL may take what they refuse. */
const OWN_LIMIT = /nested deeper|too many digits/

let database: TestDatabase
let connection: pg.Client

beforeAll(async () => {
  database = await createTestDatabase()
  connection = new pg.Client({ connectionString: database.url })
  await connection.connect()
})
afterAll(async () => {
  await connection?.end()
  await database?.drop()
})

/** What jsonb gives back for a JSON text; undefined when it does not take it. */
async function throughJsonb(text: string): Promise<string | undefined> {
  try {
    const { rows } = await connection.query<{ json: string }>('SELECT $1::jsonb::text AS json', [text])
    return rows[0]!.json
  } catch (error) {
    expect((error as { code?: string }).code).toMatch(/^(22|54)/)
    return undefined
  }
}

/** Either both take the text, and it comes back equal, or both refuse it, or we alone do, by a limit of ours. */
async function expectAgreement(text: string): Promise<void> {
  const read = readStorable(Buffer.from(text))
  const back = await throughJsonb(text)
  if (!isRefusal(read)) {
    expect(back).toBeDefined()
    expect(exactJson(back!)).toEqual(exactJson(text))
  } else if (!OWN_LIMIT.test(read.reason)) {
    expect(back).toBeUndefined()
  }
}

describe('what is read as JSON and what jsonb takes', () => {
  it('are the same for all that is good, and it comes back equal', async () => {
    await fc.assert(
      fc.asyncProperty(jsonTree(goodLeaf), space, async (tree, gap) => {
        const text = write(tree, gap)
        expect(isRefusal(readStorable(text))).toBe(false)
        await expectAgreement(text)
      }),
      { numRuns: 400 },
    )
  })

  it('are the same where good and bad are mixed', async () => {
    const leaf = fc.oneof({ weight: 8, arbitrary: goodLeaf }, badString, badNumber)
    await fc.assert(
      fc.asyncProperty(jsonTree(leaf), space, (tree, gap) => expectAgreement(write(tree, gap))),
      { numRuns: 400 },
    )
  })

  it('are the same for numbers at the edges of their range', async () => {
    const digits = fc.tuple(
      fc.constantFrom('0', '1', '9', '10', '00', '05'),
      fc.oneof(fc.nat(20), fc.integer({ min: 16_370, max: 16_390 })),
    )
    const fraction = fc.option(
      digits.map(([unit, count]) => unit.repeat(count) || '0'),
      { nil: undefined },
    )
    const exponent = fc.option(
      fc.oneof(
        fc.integer({ min: -16_400, max: -16_365 }),
        fc.integer({ min: 131_050, max: 131_080 }),
        fc.integer({ min: 147_430, max: 147_470 }),
        fc.integer({ min: -20, max: 20 }),
        fc.constantFrom(999_999_999, 2_147_483_647, -2_147_483_648, 99_999_999_999),
      ),
      { nil: undefined },
    )
    const numeral = fc
      .tuple(
        fc.constantFrom('', '-'),
        fc.constantFrom('0', '1', '9', '12', '9'.repeat(20)),
        fraction,
        exponent,
      )
      .map(([sign, integer, behind, power]) =>
        [
          sign,
          integer,
          behind === undefined ? '' : `.${behind}`,
          power === undefined ? '' : `e${power}`,
        ].join(''),
      )
    await fc.assert(fc.asyncProperty(numeral, expectAgreement), { numRuns: 400 })
  })

  it('are the same for text that is no JSON, or only almost', async () => {
    const token = fc.constantFrom(
      ...[
        '{',
        '}',
        '[',
        ']',
        ',',
        ':',
        '"',
        '"a"',
        '\\',
        '\\u12',
        '\\x',
        '0',
        '01',
        '1.',
        '.5',
        '+1',
        '-',
        '1e',
        '1E+5',
      ],
      ...[
        'true',
        'True',
        'nul',
        'null',
        'NaN',
        'Infinity',
        '/**/',
        '#',
        "'",
        '\u00a0',
        '\ufeff',
        '\v',
        '\f',
        ' ',
        '\t',
        '\u007f',
      ],
    )
    const text = fc.array(token, { maxLength: 8 }).map((tokens) => tokens.join(''))
    await fc.assert(fc.asyncProperty(text, expectAgreement), { numRuns: 600 })
  })

  it('agree up to our depth, which jsonb takes with room to spare', async () => {
    for (const depth of [1, 999, 1_000, 1_001, 3_000]) {
      await expectAgreement(`${'['.repeat(depth)}${']'.repeat(depth)}`)
      await expectAgreement(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`)
    }
    expect(await throughJsonb(`${'['.repeat(1_500)}${']'.repeat(1_500)}`)).toBeDefined()
  })
})
