import { describe, expect, it } from 'vitest'
import { LexicalIndex, oneLine, renderContext, renderSkill, skillName, wordsOf } from '../src/index.js'

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

describe('looking up by words', () => {
  it('prefers rare words and short texts, and finds nothing without a shared word', () => {
    const index = new LexicalIndex<string>()
    for (const text of ['a seat on a train', 'a seat on a plane', '予約 の 変更']) index.add(text, text)
    expect(index.find('train seat', 1)).toEqual(['a seat on a train'])
    expect(index.find('変更したい', 3)).toEqual(['予約 の 変更'])
    expect(index.find('zebra', 3)).toEqual([])
    expect(wordsOf('Über-Maß 12')).toEqual(['über', 'maß', '12'])
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
