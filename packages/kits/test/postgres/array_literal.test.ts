import fc from 'fast-check'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { plainArray, textArray } from '../../src/postgres/statement.ts'

// The type's oid in PostgreSQL's catalogue.
const TEXT_ARRAY = 1009 as number as Parameters<typeof pg.types.getTypeParser>[0]

describe('an array written for PostgreSQL', () => {
  it('returns every text, NULL as a word included', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('NULL', 'null', '', '{', ',', '"', '\\', ' '),
    )
    fc.assert(
      fc.property(fc.array(fc.option(text), { maxLength: 6 }), (values) => {
        expect(pg.types.getTypeParser(TEXT_ARRAY)(textArray(values))).toEqual(values)
      }),
    )
  })

  it('writes null for what is missing among plain values', () => {
    expect(plainArray([1, null, 3])).toBe('{1,NULL,3}')
    expect(plainArray([])).toBe('{}')
    expect(plainArray([true, false])).toBe('{true,false}')
  })
})
