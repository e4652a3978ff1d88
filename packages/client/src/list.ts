import { AnnalsError } from './annals_error.js'

/** One page of a list, as the API returns it. */
export interface Page<Item> {
  items: Item[]
  has_more: boolean
  next_cursor: string
}

/**
 * A lazy list: `for await` returns the items of all pages, `pages()` every page, `page()` one. No request is sent
 * before, and each use starts over.
 */
export class List<Item, P extends Page<Item> = Page<Item>> implements AsyncIterable<Item> {
  readonly #read: (cursor?: string) => Promise<P>

  constructor(read: (cursor?: string) => Promise<P>) {
    this.#read = read
  }

  /** The page at `cursor`, the previous page's `next_cursor`; without it, the first. */
  page(cursor?: string): Promise<P> {
    return this.#read(cursor)
  }

  /** Every page, from the one at `cursor` or the first. */
  async *pages(cursor?: string): AsyncGenerator<P, void, undefined> {
    let page = await this.#read(cursor)
    yield page
    while (page.has_more) {
      const cursor = page.next_cursor
      page = await this.#read(cursor)
      if (page.next_cursor === cursor) throw standsStill()
      yield page
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const page of this.pages()) yield* page.items
  }
}

/** A walk that returns to an earlier position would never end. */
function standsStill(): AnnalsError {
  return new AnnalsError({
    status: 200,
    error: 'unexpected_answer',
    message: 'The list came back to a page that it had given already, so it was not read further.',
  })
}
