import { AnnalsError } from './annals_error.js'

/** One page of a list, as the API answers it. */
export interface Page<Item> {
  items: Item[]
  has_more: boolean
  next_cursor: string
}

/**
 * A list that is read as far as it is used: `for await` gives every item of all pages, `pages()` every page,
 * `page()` one. Nothing is asked for before, and each use begins anew.
 */
export class List<Item, P extends Page<Item> = Page<Item>> implements AsyncIterable<Item> {
  readonly #read: (cursor?: string) => Promise<P>

  constructor(read: (cursor?: string) => Promise<P>) {
    this.#read = read
  }

  /** The page at `cursor`, the `next_cursor` of the page before it; without one, the first. */
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

/** A walk that comes back to where it was would never end. */
function standsStill(): AnnalsError {
  return new AnnalsError({
    status: 200,
    error: 'unexpected_answer',
    message: 'The list came back to a page that it had given already, so it was not read further.',
  })
}
