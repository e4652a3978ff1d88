import fc from 'fast-check'
import { expect, it } from 'vitest'
import { fusedEntries, fusedSessions, type RecalledEntry, readEmbeddings } from '../src/index.ts'

const answerOf = (...embeddings: unknown[]) =>
  JSON.stringify({ data: embeddings.map((embedding, index) => ({ index, embedding })) })

it('vectors are read in the order of their texts, with the signs of their values', () => {
  const data = [
    { index: 1, embedding: [-1, 0.5, 0, 2, 1e-60] },
    { index: 0, embedding: [1, 1, 1, 1, -0.25] },
  ]
  expect(readEmbeddings(JSON.stringify({ data }), 2)).toEqual({
    dimension: 5,
    vectors: [
      { values: '{1.000000,1.000000,1.000000,1.000000,-0.2500000}', sketch: 'f0' },
      { values: '{-1.000000,0.5000000,0.000000,2.000000,0.000000}', sketch: '58' },
    ],
  })
})

it.each([
  ['too few vectors', answerOf([1, 2]), 2],
  ['too many vectors', answerOf([1, 2], [1, 2]), 1],
  ['vectors of different lengths', answerOf([1, 2], [1]), 2],
  ['an empty vector', answerOf([]), 1],
  ['a vector without a direction', answerOf([0, 0]), 1],
  ['a value that is no number', answerOf([1, 'NaN']), 1],
  ['a value that is too large for a real', '{"data":[{"embedding":[1e60]}]}', 1],
  ['two vectors of one text', '{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[2]}]}', 2],
  [
    'vectors of texts that were not sent',
    '{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[2]}]}',
    2,
  ],
  ['a negative place', '{"data":[{"index":-1,"embedding":[1]}]}', 1],
  ['a vector that is longer than any model has', answerOf(new Array(5_000).fill(1)), 1],
  ['no data', '{}', 1],
  ['nothing', 'null', 1],
  ['something else than JSON', '<html>', 1],
])('an answer with %s is refused', (_what, answer, count) => {
  expect(() => readEmbeddings(answer, count)).toThrow()
})

const entry = (session_id: string, seq = 1, is_phrase = false): RecalledEntry =>
  ({ session_id, seq, is_phrase, score: 1 }) as RecalledEntry
const sessions = (...ids: string[]) => ids.map((id) => ({ session_id: id, score: 1, entries: [entry(id)] }))

it('what words and vectors both find comes first, and what a vector alone finds comes after five that words find', () => {
  const found = fusedSessions(sessions('a', 'b', 'c', 'd', 'e', 'f', 'g'), [entry('z'), entry('c')])
  expect(found.map(({ session_id }) => session_id).slice(0, 7)).toEqual(['c', 'a', 'b', 'd', 'e', 'z', 'f'])
  expect(found.find(({ session_id }) => session_id === 'z')!.entries).toHaveLength(1)
})

it('a phrase that was said comes first, whatever vectors say', () => {
  const found = fusedEntries([entry('a', 1, true), entry('b')], [entry('b'), entry('c'), entry('a', 2)])
  expect(found[0]).toMatchObject({ session_id: 'a', seq: 1 })
})

it('two lists become one with each entry once, in the order of the first where the second is empty', () => {
  const list = fc.uniqueArray(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.integer({ min: 1, max: 5 })), {
    selector: (place) => place.join(),
  })
  fc.assert(
    fc.property(list, list, (words, vectors) => {
      const [byWords, byVectors] = [words, vectors].map((places) => places.map(([id, seq]) => entry(id, seq)))
      const places = fusedEntries(byWords!, byVectors!).map(({ session_id, seq }) => `${session_id},${seq}`)
      expect(new Set(places)).toEqual(new Set([...words, ...vectors].map((place) => place.join())))
      expect(places).toHaveLength(new Set(places).size)
      expect(fusedEntries(byWords!, []).map(({ seq }) => seq)).toEqual(byWords!.map(({ seq }) => seq))
    }),
  )
})
