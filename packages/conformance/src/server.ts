import { Broken } from './expectations.js'

/** An entry as the timeline shows it: the fields that the promises are about. */
export interface Entry {
  id: string
  seq: number
  kind?: string
  type?: string
  data?: Record<string, unknown>
  created_at: string
  retracted_by?: number
}

export interface Session {
  id: string
  configs: Record<string, unknown>
  created_at: string
}

export interface Page<Item> {
  items: Item[]
  has_more: boolean
  next_cursor: string
}

/** An answer as it came. `data` is that of a success. */
export interface Answer<Data = Record<string, unknown>> {
  request: string
  status: number
  headers: Headers
  text: string
  error: string
  data: Data
}

export interface Sent {
  body?: unknown
  /** In place of a body: text that no serializer has touched. */
  text?: string
  query?: Record<string, string | number | boolean>
  headers?: Record<string, string>
}

/** A server and a key, spoken to over HTTP and nothing else. */
export class Server {
  constructor(
    readonly url: string,
    private readonly key: string | undefined,
    private readonly signal: AbortSignal,
  ) {}

  async send<Data = Record<string, unknown>>(
    method: string,
    path: string,
    { body, text, query = {}, headers = {} }: Sent = {},
  ): Promise<Answer<Data>> {
    const sent = text ?? (body === undefined ? undefined : JSON.stringify(body))
    const response = await fetch(this.address(path, query), {
      method,
      headers: {
        ...(this.key === undefined ? {} : { authorization: `Bearer ${this.key}` }),
        ...(sent === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(sent === undefined ? {} : { body: sent }),
      signal: this.signal,
      redirect: 'error',
    })
    const received = await response.text()
    const { error, data } = envelopeOf(received)
    return {
      request: `${method} ${path}`,
      status: response.status,
      headers: response.headers,
      text: received,
      error: typeof error === 'string' ? error : '',
      data: data as Data,
    }
  }

  /** Like `send`, of a request that must succeed. */
  async ok<Data = Record<string, unknown>>(method: string, path: string, sent?: Sent): Promise<Data> {
    return succeeded(await this.send<Data>(method, path, sent))
  }

  /** The entries that a live tail sends, until the caller stops reading. */
  async *tail(session: string, position: Pick<Sent, 'query' | 'headers'> = {}): AsyncGenerator<Entry> {
    const path = `/session/${session}/timeline`
    const end = new AbortController()
    const response = await fetch(this.address(path, position.query ?? {}), {
      headers: { authorization: `Bearer ${this.key}`, accept: 'text/event-stream', ...position.headers },
      signal: AbortSignal.any([this.signal, end.signal]),
    })
    const type = response.headers.get('content-type') ?? 'no Content-Type'
    if (response.status !== 200 || !type.startsWith('text/event-stream'))
      throw new Broken(`GET ${path} for a live tail was answered ${response.status} with ${type}.`)
    try {
      yield* entriesOf(response.body!)
    } finally {
      end.abort()
    }
  }

  private address(path: string, query: NonNullable<Sent['query']>): string {
    const parameters = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) parameters.set(name, String(value))
    return `${this.url}/api/v1${path}${parameters.size > 0 ? `?${parameters}` : ''}`
  }
}

/** The data of a success. */
export function succeeded<Data>(answer: Answer<Data>): Data {
  if (answer.status >= 300 || typeof answer.data !== 'object' || answer.data === null)
    throw new Broken(`${answer.request} was answered ${shown(answer)} instead of a success with data.`)
  return answer.data
}

/** Checks a refusal: its status and its name. */
export function refused(answer: Answer<unknown>, status: number, error: string, why: string): void {
  if (answer.status !== status || answer.error !== error)
    throw new Broken(`${why}: ${answer.request} was answered ${shown(answer)} instead of ${status} ${error}.`)
}

function shown({ status, error }: Answer<unknown>): string {
  return error === '' ? String(status) : `${status} ${error}`
}

function envelopeOf(text: string): { error?: unknown; data?: unknown } {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}

async function* entriesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Entry> {
  let buffered = ''
  const decoder = new TextDecoder()
  for await (const piece of stream) {
    const frames = (buffered + decoder.decode(piece, { stream: true })).split('\n\n')
    buffered = frames.pop()!
    for (const frame of frames) {
      const lines = frame.split('\n')
      const data = lines.find((line) => line.startsWith('data:'))
      if (data === undefined) continue
      const entry = JSON.parse(data.slice('data:'.length)) as Entry
      const id = lines
        .find((line) => line.startsWith('id:'))
        ?.slice('id:'.length)
        .trim()
      if (Number.parseInt(id ?? '', 10) !== entry.seq)
        throw new Broken(`A tail sent the entry with seq ${entry.seq} under the id ${id}.`)
      yield entry
    }
  }
}
