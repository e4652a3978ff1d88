import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AnnalsError } from '../../../src/errors.ts'
import { Cursors } from '../../../src/http/answer/page_answer.ts'

type QueryPart = string | boolean | undefined

const queryPart: fc.Arbitrary<QueryPart> = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.constantFrom('true', 'false', 'null', '', '[]', '","', '\n'),
  fc.boolean(),
  fc.constant(undefined),
)
const query = fc.array(queryPart, { minLength: 1, maxLength: 5 })
const position = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 60 }),
  fc.nat().map(String),
  fc.uuid().map((id) => `2026-11-21T09:30:00.123456Z|${id}`),
)
const anyCharacter = fc.oneof(
  fc.constantFrom(...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/ .'),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }),
)

/** The name of the error that reading a cursor ends with; undefined when it can be read. */
function refusal(cursors: Cursors, cursor: string): string | undefined {
  try {
    cursors.read(cursor)
    return undefined
  } catch (error) {
    expect(error).toBeInstanceOf(AnnalsError)
    return (error as AnnalsError).error
  }
}

describe('a cursor', () => {
  it('returns the position that it was made from', () => {
    fc.assert(
      fc.property(query, position, (parts, text) => {
        expect(new Cursors(...parts).read(new Cursors(...parts).write(text))).toBe(text)
      }),
      { numRuns: 300 },
    )
  })

  it('has characters only that need no escape in a URL', () => {
    fc.assert(
      fc.property(query, position, (parts, text) => {
        const cursor = new Cursors(...parts).write(text)
        expect(encodeURIComponent(cursor)).toBe(cursor)
      }),
    )
  })

  it('is refused with any one character changed', () => {
    fc.assert(
      fc.property(query, position, fc.nat(), anyCharacter, (parts, text, at, character) => {
        const cursors = new Cursors(...parts)
        const cursor = cursors.write(text)
        const index = at % cursor.length
        fc.pre(cursor[index] !== character)
        expect(refusal(cursors, cursor.slice(0, index) + character + cursor.slice(index + 1))).toBe(
          'invalid_cursor',
        )
      }),
      { numRuns: 1_000 },
    )
  })

  it('is refused with its last character spelt another way that decodes to the same bytes', () => {
    const cursors = new Cursors('sessions')
    for (const text of ['1', '12', '123']) {
      const cursor = cursors.write(text)
      for (const last of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_') {
        if (last !== cursor.at(-1))
          expect(refusal(cursors, cursor.slice(0, -1) + last)).toBe('invalid_cursor')
      }
    }
  })

  it('is refused with anything cut off, put in or put after', () => {
    fc.assert(
      fc.property(query, position, fc.nat(), anyCharacter, (parts, text, at, character) => {
        const cursors = new Cursors(...parts)
        const cursor = cursors.write(text)
        const index = at % cursor.length
        expect(refusal(cursors, cursor.slice(0, index))).toBe('invalid_cursor')
        expect(refusal(cursors, cursor.slice(index + 1))).toBe('invalid_cursor')
        expect(refusal(cursors, cursor.slice(0, index) + character + cursor.slice(index))).toBe(
          'invalid_cursor',
        )
        for (const more of ['=', '==', ' ', '\n', character])
          expect(refusal(cursors, cursor + more)).toBe('invalid_cursor')
      }),
      { numRuns: 300 },
    )
  })

  it('is refused by a query that differs in any part, in their number or in their order', () => {
    fc.assert(
      fc.property(query, query, position, (parts, others, text) => {
        fc.pre(!isSame(parts, others))
        expect(refusal(new Cursors(...others), new Cursors(...parts).write(text))).toBe('invalid_cursor')
      }),
      { numRuns: 500 },
    )
  })

  it('tells a part that is absent from any that is there', () => {
    const cursor = new Cursors('sessions', 'p', false, undefined, undefined).write('x')
    for (const others of [
      ['sessions', 'p', false, '', undefined],
      ['sessions', 'p', false, undefined, 'null'],
      ['sessions', 'p', 'false', undefined, undefined],
      ['sessions', 'p', false, undefined],
      ['learning_spaces', 'p', false, undefined, undefined],
      ['sessions', 'q', false, undefined, undefined],
    ])
      expect(refusal(new Cursors(...others), cursor)).toBe('invalid_cursor')
  })

  it.each(['', 'A', 'AAAA', 'not a cursor', '🙂', '%00', 'null', `${'A'.repeat(1_000)}`])(
    'is refused when it never was one: %s',
    (text) => {
      expect(refusal(new Cursors('sessions', 'p'), text)).toBe('invalid_cursor')
    },
  )
})

function isSame(parts: QueryPart[], others: QueryPart[]): boolean {
  return parts.length === others.length && parts.every((part, index) => part === others[index])
}
