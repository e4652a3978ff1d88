import { describe, expect, it } from 'vitest'
import { Ledger, missing } from '../victim/ledger.ts'

const acknowledged = [
  { seq: 1, marker: 'a' },
  { seq: 2, marker: 'b' },
]

describe('what was acknowledged', () => {
  it('is all there where each entry is once at its place, whatever else is', () => {
    expect(missing('s', acknowledged, [...acknowledged, { seq: 3, marker: 'never answered' }])).toEqual([])
  })

  it.each([
    [
      'an entry that is gone',
      [acknowledged[0]!],
      'entry b was acknowledged at 2 of session s and is not there',
    ],
    [
      'an entry elsewhere',
      [acknowledged[0]!, { seq: 3, marker: 'b' }],
      'entry b was acknowledged at 2 of session s and is at 3',
    ],
    [
      'an entry that is there twice',
      [...acknowledged, { seq: 3, marker: 'b' }],
      'entry b was acknowledged at 2 of session s and is at 2 and 3',
    ],
  ])('is told as missing: %s', (_case, stored, sentence) => {
    expect(missing('s', acknowledged, stored)).toEqual([sentence])
  })

  it('is told as missing with its session', () => {
    expect(missing('s', acknowledged, undefined)).toEqual([
      'session s with 2 acknowledged entries is not there',
    ])
  })

  it('is counted over all sessions', () => {
    const ledger = new Ledger()
    ledger.open('one')
    ledger.open('other')
    for (const entry of acknowledged) ledger.keep('other', entry)
    expect(ledger.size).toBe(2)
    expect(ledger.entriesOf('other')).toEqual(acknowledged)
  })
})
