import { expect } from 'vitest'
import type { Page } from './api_client.ts'
import { expectOk } from './expectations.ts'
import type { Answer } from './http_client.ts'

const PAGES_MAX = 2_000

/**
 * Follows `next_cursor` to the end and gives every item in the order it came. `afterPage` runs between two
 * pages and may change what is stored.
 */
export async function walkPages<T>(
  fetchPage: (cursor: string | undefined) => Promise<Answer<Page<T>>>,
  afterPage: (items: T[]) => Promise<void> = async () => {},
): Promise<T[]> {
  const all: T[] = []
  let cursor: string | undefined
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const { items, has_more, next_cursor } = expectOk(await fetchPage(cursor))
    all.push(...items)
    if (!has_more) {
      expect(next_cursor).toBe('')
      return all
    }
    expect(next_cursor).toMatch(/^[A-Za-z0-9._~-]+$/)
    expect(items.length).toBeGreaterThan(0)
    cursor = next_cursor
    await afterPage(items)
  }
  throw new Error(`The walk did not end after ${PAGES_MAX} pages`)
}
