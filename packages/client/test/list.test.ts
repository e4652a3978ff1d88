import { describe, expect, it } from 'vitest'
import { Annals } from '../src/index.ts'
import { ok, refused, scriptedFetch } from './scripted_fetch.ts'

const page = (items: unknown[], next_cursor = '') => ok({ items, has_more: next_cursor !== '', next_cursor })

function listOf(...steps: Parameters<typeof scriptedFetch>) {
  const { fetch, sent } = scriptedFetch(...steps)
  const list = new Annals({ token: 'sk-1', fetch }).sessions.list({ user: 'ada', limit: 2 })
  const asked = () => sent.map((request) => new URL(request.url).search)
  return { list, asked }
}

describe('a list', () => {
  it('asks for nothing before it is read', () => {
    expect(listOf().asked()).toEqual([])
  })

  it('returns every item of all pages, with the same filters for each', async () => {
    const { list, asked } = listOf(page([1, 2], 'c1'), page([], 'c2'), page([3]))
    const items: unknown[] = []
    for await (const item of list) items.push(item)
    expect(items).toEqual([1, 2, 3])
    expect(asked()).toEqual([
      '?user=ada&limit=2',
      '?user=ada&limit=2&cursor=c1',
      '?user=ada&limit=2&cursor=c2',
    ])
  })

  it('asks for no page that is not used', async () => {
    const { list, asked } = listOf(page([1, 2], 'c1'))
    for await (const item of list) if ((item as unknown) === 2) break
    expect(asked()).toHaveLength(1)
  })

  it('returns single pages, just as the API answers them', async () => {
    const { list, asked } = listOf(page([1, 2], 'c1'), page([3]))
    const first = await list.page()
    expect(first).toEqual({ items: [1, 2], has_more: true, next_cursor: 'c1' })
    expect(await list.page(first.next_cursor)).toEqual({ items: [3], has_more: false, next_cursor: '' })
    expect(asked()).toEqual(['?user=ada&limit=2', '?user=ada&limit=2&cursor=c1'])
  })

  it('returns its pages one after the other, and begins anew each time', async () => {
    const { list } = listOf(page([1], 'c1'), page([2]), page([1], 'c1'), page([2]))
    for (let walk = 0; walk < 2; walk += 1) {
      const pages: unknown[] = []
      for await (const { items } of list.pages()) pages.push(items)
      expect(pages).toEqual([[1], [2]])
    }
  })

  it('begins at the cursor that its query has', async () => {
    const { fetch, sent } = scriptedFetch(page([3], 'c2'), page([4]))
    const list = new Annals({ token: 'sk-1', fetch }).users.list({ cursor: 'c1' })
    const items: unknown[] = []
    for await (const item of list) items.push(item)
    expect(items).toEqual([3, 4])
    expect(sent.map((request) => new URL(request.url).search)).toEqual([
      '?limit=200&cursor=c1',
      '?limit=200&cursor=c2',
    ])
  })

  it('throws what a page throws', async () => {
    const { list } = listOf(page([1], 'c1'), refused(400, 'invalid_cursor'))
    const seen: unknown[] = []
    const walk = async () => {
      for await (const item of list) seen.push(item)
    }
    await expect(walk()).rejects.toMatchObject({ status: 400, error: 'invalid_cursor' })
    expect(seen).toEqual([1])
  })

  it('does not run in a circle', async () => {
    const { list } = listOf(page([1], 'c1'), page([1], 'c1'))
    const walk = async () => {
      for await (const _item of list);
    }
    await expect(walk()).rejects.toMatchObject({ error: 'unexpected_answer' })
  })
})
