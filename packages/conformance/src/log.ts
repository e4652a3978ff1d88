import { must } from './expectations.js'
import { type Answer, type Entry, type Page, type Sent, type Server, succeeded } from './server.js'

/** One session of the server under test. */
export class Log {
  constructor(
    private readonly server: Server,
    readonly id: string,
  ) {}

  get path(): string {
    return `/session/${this.id}`
  }

  /** Appends an event. */
  async append(data: Record<string, unknown> = {}, headers: Record<string, string> = {}): Promise<Entry> {
    return succeeded(await this.tryAppend(data, headers))
  }

  tryAppend(
    data: Record<string, unknown> = {},
    headers: Record<string, string> = {},
  ): Promise<Answer<Entry>> {
    return this.send<Entry>('POST', '/events', { body: { type: 'conformance', data }, headers })
  }

  /** Appends a user's message. */
  say(content: string): Promise<Entry> {
    return this.ok('POST', '/messages', { body: { blob: { role: 'user', content } } })
  }

  async batch(entries: object[]): Promise<Entry[]> {
    const { items } = await this.ok<{ items: Entry[] }>('POST', '/entries', { body: { entries } })
    return items
  }

  /** The whole log, page by page. */
  async timeline(): Promise<Entry[]> {
    const entries: Entry[] = []
    for (let cursor = ''; ; ) {
      const page = await this.page({ limit: 50, ...(cursor === '' ? {} : { cursor }) })
      entries.push(...page.items)
      if (!page.has_more) return entries
      must(page.next_cursor !== cursor, 'A page of the timeline is followed by itself.')
      cursor = page.next_cursor
    }
  }

  page(query: Record<string, string | number>): Promise<Page<Entry>> {
    return this.ok('GET', '/timeline', { query })
  }

  async seqs(): Promise<number[]> {
    return (await this.timeline()).map(({ seq }) => seq)
  }

  send<Data = Record<string, unknown>>(method: string, path: string, sent?: Sent): Promise<Answer<Data>> {
    return this.server.send(method, `${this.path}${path}`, sent)
  }

  ok<Data = Record<string, unknown>>(method: string, path: string, sent?: Sent): Promise<Data> {
    return this.server.ok(method, `${this.path}${path}`, sent)
  }
}

/** An event for a batch. */
export function event(data: Record<string, unknown>, more: Record<string, unknown> = {}): object {
  return { kind: 'event', type: 'conformance', data, ...more }
}
