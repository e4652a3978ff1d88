import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MESSAGE_FORMATS } from '../../src/index.js'
import {
  entryText,
  InvalidQuery,
  indexedLabel,
  indexedWords,
  isExact,
  matchTerms,
  parseSearchQuery,
  placesOfTerms,
  SEARCHED_LENGTH_MAX,
  SNIPPET_LENGTH_MAX,
  searchCondition,
  wordsOf,
} from '../../src/search/index.js'
import { MESSAGES } from '../arbitrary_messages.js'
import { MATCHES, REFUSED } from './search_vectors.js'

const snippetOf = (...of: Parameters<typeof matchTerms>) => matchTerms(...of)?.snippet

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => from + index)

const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.lorem({ maxCount: 40 }),
  fc.string({
    unit: fc.constantFrom('東', '京', 'ガ', 'ﾞ', '한', 'ก', '็', 'a', 'Σ', 'ﷺ', '½', ' ', '_', '🙂'),
  }),
)

describe('a search query', () => {
  it.each(MATCHES)('of %j: %j is found: %j', (text, query, is_found) => {
    expect(snippetOf(text, parseSearchQuery(query)) !== undefined).toBe(is_found)
  })

  it.each(REFUSED)('%j is refused with its reason', (query, reason) => {
    expect(() => parseSearchQuery(query)).toThrow(reason)
  })

  it('becomes a condition of PostgreSQL, and says whether that is all', () => {
    const terms = parseSearchQuery('refund -paid res* -"too late" get_user')
    expect(searchCondition(terms, ['@user'])).toEqual({
      together: `'@user' & 'refund' & 'res':* & 'get' & 'user'`,
      alike: ['@user %', '% refund %', '% res%', '% get %', '% user %'],
      unlike: ['% paid %'],
      longest: 'refund',
    })
    expect([terms, parseSearchQuery('refund -paid res*')].map(isExact)).toEqual([false, true])
  })

  it('of any text is refused or becomes words of letters, digits and marks, of bounded length and number', () => {
    fc.assert(
      fc.property(anyText, (query) => {
        try {
          const words = parseSearchQuery(query).flatMap((term) => term.words)
          expect(words.length).toBeLessThanOrEqual(32)
          for (const word of words) expect(word).toMatch(/^[\p{L}\p{N}\p{M}]{1,64}$/u)
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidQuery)
        }
      }),
    )
  })
})

describe('a text', () => {
  it('of ASCII has the same words, whatever stands beside it', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary-ascii', maxLength: 200 }), (text) => {
        expect([
          ...wordsOf(text),
          { text: 'é', start: text.length + 1, end: text.length + 2, is_tail: false },
        ]).toEqual(wordsOf(`${text} é`))
      }),
    )
  })

  it('is found by each of its words, alone and as the beginning of one, and is not found without it', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        for (const { text: word } of wordsOf(text)) {
          expect(snippetOf(text, parseSearchQuery(word)), word).toBeDefined()
          expect(snippetOf(text, parseSearchQuery(`${word}*`)), word).toBeDefined()
          expect(snippetOf(text, [{ words: [word], is_prefix: false, is_excluded: true }])).toBeUndefined()
        }
      }),
    )
  })

  it('of ASCII is found as by its words, without all of them being made', () => {
    const part = fc.constantFrom(
      'a',
      'b',
      'ab',
      'A',
      '1',
      ' ',
      '  ',
      '_',
      '\n',
      '—',
      '🙂',
      'é',
      'ﬁ',
      'x'.repeat(70),
    )
    const text = fc.array(part, { maxLength: 30 }).map((parts) => parts.join(''))
    const query = fc.constantFrom('a', 'ab*', '"a b"', '"a ab*', 'a_b_1', 'a -ab', 'b -"a b"', 'x*', '1 a')
    fc.assert(
      fc.property(text, query, (text, query) => {
        const terms = parseSearchQuery(query)
        const places = (one: (typeof terms)[number]) => placesOfTerms(text, [{ ...one, is_excluded: false }])
        const isFound = terms.every((term) => places(term).length > 0 !== term.is_excluded)
        const match = matchTerms(text, terms)
        expect(match !== undefined).toBe(isFound)
        if (!match || text.length > SNIPPET_LENGTH_MAX) return
        const marked = new Set(match.snippet.hits.flatMap(([from, to]) => range(from, to)))
        const expected = terms.filter((term) => !term.is_excluded).flatMap(places)
        expect(marked).toEqual(new Set(expected.flatMap(([from, to]) => range(from, to))))
        // With a word of other letters, all words are made.
        const longer = matchTerms(`${text} é`, terms)!.score
        const oneMore = matchTerms(`${text} e`, terms)!.score
        expect(oneMore).toBe(longer)
      }),
      { numRuns: 1_000 },
    )
  })

  it('is indexed by each of its words once, with spaces between them and nothing that a tsvector reads otherwise', () => {
    expect(indexedWords('a b b c, Ab')).toBe('a b c ab')
    fc.assert(
      fc.property(anyText, (text) => {
        const words = indexedWords(text).split(' ').filter(Boolean)
        expect(words).toEqual([...new Set(wordsOf(text).map((word) => word.text))])
        for (const word of words) expect(word).toMatch(/^[\p{L}\p{N}\p{M}]+$/u)
      }),
    )
  })

  it('has no more marks on a letter than writing has: ordering thousands takes quadratic time', () => {
    const [word, ...others] = wordsOf(`e${'\u0301'.repeat(20_000)}${'\u0323'.repeat(20_000)}`)
    expect([...word!.text.normalize('NFD')].length).toBeLessThanOrEqual(31)
    expect(others).toEqual([])
  })

  it('has a label of its type or role, which is like no word whatever they are', () => {
    expect([indexedLabel('tool_call', null), indexedLabel(null, 'user')]).toEqual(['=tool_call', '@user'])
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (type) => {
        expect(indexedLabel(type, null)).toMatch(/^=\w{0,64}$/)
      }),
    )
  })
})

describe('a snippet', () => {
  it('shows the stretch with most of what was looked for, and where it stands', () => {
    const text = `${'refund '.repeat(10)}${'x '.repeat(300)}the refund was never paid out${' y'.repeat(300)}`
    const { text: shown, hits } = snippetOf(text, parseSearchQuery('refund paid'))!
    expect(hits.map(([start, end]) => shown.slice(start, end))).toEqual(['refund', 'paid'])
    expect(shown.length).toBeLessThanOrEqual(SNIPPET_LENGTH_MAX)
    expect(shown.length).toBeGreaterThan(SNIPPET_LENGTH_MAX - 10)
  })

  it('begins and ends with whole words, and where there are none, with whole characters', () => {
    const said = 'somebody wanted their money back '
    for (const before of [7, 8, 9, 10]) {
      const text = `${said.repeat(before)}${'x'.repeat(before)} refund, ${said.repeat(9)}`
      const { text: shown, hits } = snippetOf(text, parseSearchQuery('refund'))!
      const words = new Set(text.split(/\W+/))
      expect(shown.split(/\W+/).filter((word) => !words.has(word))).toEqual([])
      expect(shown.slice(...hits[0]!)).toBe('refund')
      expect(shown.length).toBeGreaterThan(SNIPPET_LENGTH_MAX - 2 * said.length)
    }
    for (const letter of ['東', '𝒳', '🙂', 'x']) {
      const { text: shown, hits } = snippetOf(
        `${letter.repeat(301)} refund ${letter.repeat(301)}`,
        parseSearchQuery('refund'),
      )!
      expect(shown.isWellFormed()).toBe(true)
      expect(shown.length).toBeGreaterThanOrEqual(SNIPPET_LENGTH_MAX - 2)
      expect(shown.slice(...hits[0]!)).toBe('refund')
    }
  })

  it('cuts a word that is longer than it', () => {
    expect(snippetOf('x'.repeat(900), parseSearchQuery('x'.repeat(900)))).toEqual({
      text: 'x'.repeat(SNIPPET_LENGTH_MAX),
      hits: [[0, SNIPPET_LENGTH_MAX]],
    })
  })

  it('marks a phrase as one, and a word of pairs as one', () => {
    const phrase = snippetOf('was it the refund failed or not', parseSearchQuery('"refund failed"'))!
    expect(phrase.hits).toEqual([[11, 24]])
    expect(snippetOf('東京都庁に行く', parseSearchQuery('京都庁'))!.hits).toEqual([[1, 4]])
  })

  it('is a part of the text of at most 200 characters, whole ones, with hits inside and in order', () => {
    fc.assert(
      fc.property(anyText, fc.nat(), fc.string({ unit: 'grapheme', maxLength: 300 }), (text, nth, around) => {
        const whole = `${around} ${text} ${around}`
        const words = wordsOf(whole)
        fc.pre(words.length > 0)
        const snippet = snippetOf(whole, parseSearchQuery(words[nth % words.length]!.text))!
        expect(whole).toContain(snippet.text)
        expect(snippet.text.length).toBeLessThanOrEqual(SNIPPET_LENGTH_MAX + 1)
        expect(snippet.hits.length).toBeGreaterThan(0)
        let before = -1
        for (const [start, end] of snippet.hits) {
          expect(start).toBeGreaterThan(before)
          expect(end).toBeGreaterThan(start)
          expect(end).toBeLessThanOrEqual(snippet.text.length)
          before = end
        }
      }),
    )
  })
})

describe('the score of a text', () => {
  it('grows with the occurrences of what is looked for and falls with the length', () => {
    const score = (text: string) => matchTerms(text, parseSearchQuery('refund'))!.score
    expect(score('refund refund')).toBeGreaterThan(score('refund x'))
    expect(score('refund')).toBeGreaterThan(score(`refund ${'x '.repeat(100)}`))
  })
})

describe("an entry's text", () => {
  it('of an event is its type and the values in its data, digits and all', () => {
    const data =
      '{"name":"get_user","n":12345678901234567890,"list":[{"a":"x\\ny"},null,true],"__proto__":1.5}'
    const text = 'tool_call\nget_user\n12345678901234567890\nx\ny\n1.5'
    expect(entryText({ type: 'tool_call', format: null, data })).toBe(text)
  })

  it('of a message is its text, and names, arguments and results of its tools', () => {
    const call = { id: 'c1', type: 'function', function: { name: 'get_user', arguments: '{"id":"u\\n7"}' } }
    const asked = { role: 'assistant', content: 'One moment', tool_calls: [call] }
    const found = { role: 'tool', tool_call_id: 'c1', content: '{"mail":"omar@example.com"}' }
    const openai = (blob: object) => entryText({ type: null, format: 'openai', data: JSON.stringify(blob) })
    expect(openai(asked)).toBe('One moment\nget_user\nu\n7')
    expect(openai(found)).toBe('omar@example.com')
    expect(
      openai({ ...asked, tool_calls: [{ ...call, function: { name: 'f', arguments: '{"a":"cut' } }] }),
    ).toBe('One moment\nf\n{"a":"cut')
  })

  it('of any message of any format is made without an error, and is bounded', () => {
    for (const format of MESSAGE_FORMATS) {
      const read = (blob: object) => entryText({ type: null, format, data: JSON.stringify(blob) })
      fc.assert(fc.property(MESSAGES[format], (blob) => read(blob).length <= SEARCHED_LENGTH_MAX))
    }
    const data = JSON.stringify({ text: 'x'.repeat(40_000), more: 'y'.repeat(40_000), rest: 'z' })
    expect(entryText({ type: 'note', format: null, data })).toHaveLength(SEARCHED_LENGTH_MAX)
    const nested = `${'['.repeat(900)}"deep"${']'.repeat(900)}`
    expect(entryText({ type: 'note', format: null, data: `{"a":${nested}}` })).toContain('deep')
  })
})
