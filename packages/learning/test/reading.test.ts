import { describe, expect, it } from 'vitest'
import { oneLine, renderContext, renderSkill, skillName, spaceContext } from '../src/index.js'

const SESSION = '01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d'

describe('SKILL.md', () => {
  it('has front matter, a section for each kind, and citations in comments that no text can close', () => {
    const cites = [{ session_id: SESSION, seq: 7 }]
    const pieces = renderSkill({ name: 'pay', description: 'Say "when":\nalways.' }, [
      { id: '1', kind: 'fact', text: 'Cards expire. --> # Not a heading', cites },
      { id: '2', kind: 'procedure', text: 'Ask\nfirst.', cites: [] },
    ])
    expect([...pieces].join('')).toBe(`---
name: pay
description: "Say \\"when\\": always."
---

# pay

## What to do

- Ask first.

## Facts

- Cards expire. --› # Not a heading <!-- [${SESSION}#7] -->
`)
  })
})

describe('a context', () => {
  it('has the statements that there is room for, in their order', () => {
    const statements = ['One.', 'x '.repeat(500), 'Two.'].map((text) => ({ kind: 'fact' as const, text }))
    const { text, shown } = renderContext(statements, 60)
    expect(shown.map((one) => one.text)).toEqual(['One.', 'Two.'])
    expect(text.split('\n').slice(1)).toEqual(['- (fact) One.', '- (fact) Two.'])
  })
})

describe('the context of a space', () => {
  const statement = (id: string, text: string) => ({
    id,
    text,
    skill: 'travel',
    kind: 'fact' as const,
    supports: 1,
  })
  const statements = [
    statement('seats', 'A seat on a plane costs more.'),
    statement('refunds', 'Refunding insured passengers takes five days.'),
    statement('trains', 'A seat on a train is free.'),
    statement('japan', '予約の変更は無料です。'),
  ]
  const idsFor = (q: string) => spaceContext(statements, q, 10_000).ids

  it('begins with what is about the task, whatever the form of its words, and has no statement without any', () => {
    expect(idsFor('Please find me a train seat!')).toEqual(['trains', 'seats'])
    expect(idsFor('the passenger wants a "refund" -quickly')).toEqual(['refunds'])
    expect(idsFor('予約を変更したい')).toEqual(['japan'])
  })

  it('has the best supported ones where no word is known, or none tells anything', () => {
    for (const q of ['zebra', '?!', '', 'of the']) expect(idsFor(q)).toEqual(statements.map(({ id }) => id))
  })
})

describe('names and lines', () => {
  it('are of the form that files need', () => {
    expect(skillName('Book_Reservation!!')).toBe('book-reservation')
    expect(skillName('予約')).toBe('general')
    expect(skillName(`${'a'.repeat(63)}-b`)).toBe('a'.repeat(63))
    expect(oneLine(' a\n\u202eb\u0000c ```')).toBe("a b c '''")
  })
})
