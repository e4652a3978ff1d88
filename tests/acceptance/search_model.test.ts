import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { ApiClient } from '../harness/api_client.ts'
import { expectOk } from '../harness/expectations.ts'
import { placesOf, switchSearch, untilIndexed } from '../harness/search.ts'
import { useSharedService } from '../harness/service.ts'

/* Random entries of two projects, and random queries, against a model that looks at every entry. */

const service = useSharedService()

const WORDS = ['refund', 'refunds', 'paid', 'seat', 'naïve', '東京', 'x7', 'Ünï', 'été', 'ต']
const anyText = fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 6 })
const anyTerm = fc.record({
  words: fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 2 }),
  is_prefix: fc.boolean(),
  is_excluded: fc.boolean(),
})
type Term = typeof anyTerm extends fc.Arbitrary<infer T> ? T : never

interface Stored {
  place: string
  words: string[]
}

/** The first two letters of a word stand for all that begin with them. */
const PREFIX_LENGTH = 2

function textOf({ words, is_prefix, is_excluded }: Term): string {
  const text = is_prefix ? `${words[0]!.slice(0, PREFIX_LENGTH)}*` : `"${words.join(' ')}"`
  return `${is_excluded ? '-' : ''}${text}`
}

function matches(entry: Stored, { words, is_prefix, is_excluded }: Term): boolean {
  const begin = words[0]!.slice(0, PREFIX_LENGTH)
  const isThere = is_prefix
    ? entry.words.some((word) => word.startsWith(begin))
    : entry.words.some((_, at) => words.every((word, n) => entry.words[at + n] === word))
  return isThere !== is_excluded
}

async function store(api: ApiClient, texts: string[][]): Promise<Stored[]> {
  const { id } = expectOk(await api.createSession(), 201)
  const entries = texts.map((words) => ({
    kind: 'event',
    type: 'n',
    data: { text: words.join(' ').toUpperCase() },
  }))
  expectOk(await api.request('POST', `/api/v1/session/${id}/entries`, { body: { entries } }), 201)
  return texts.map((words, index) => ({ place: `${id} ${index + 1}`, words }))
}

it('finds exactly the entries of its project that match, each by every one of its words', async () => {
  const projects = await Promise.all([service.newProject(), service.newProject()])
  const apis: ApiClient[] = []
  const stored: Stored[][] = [[], []]
  for (const [index, { id, token }] of projects.entries()) {
    await switchSearch(service.adminClient(), id, true)
    const api = await service.newClient({ token, node: index === 0 ? service.node : service.secondNode })
    apis.push(api)
    for (const texts of fc.sample(fc.array(anyText, { minLength: 10, maxLength: 30 }), 4))
      stored[index]!.push(...(await store(api, texts)))
  }
  for (const api of apis) await untilIndexed(api)
  const check = async (terms: Term[]) => {
    const q = terms.map(textOf).join(' ')
    for (const [index, api] of apis.entries()) {
      const expected = stored[index]!.filter((entry) => terms.every((term) => matches(entry, term)))
      expect((await placesOf(api, q)).toSorted(), q).toEqual(expected.map(({ place }) => place).toSorted())
    }
  }
  for (const word of WORDS) await check([{ words: [word], is_prefix: false, is_excluded: false }])
  const someTerms = fc
    .array(anyTerm, { minLength: 1, maxLength: 3 })
    .filter((terms) => terms.some(({ is_excluded }) => !is_excluded))
  await fc.assert(fc.asyncProperty(someTerms, check), { numRuns: 60 })
}, 120_000)
