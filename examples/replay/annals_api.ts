import { setTimeout as sleep } from 'node:timers/promises'
import { ReplayFailure } from './failure.ts'
import type { JsonObject } from './runs.ts'

/** How long one request is tried again while the server is away, in ms. */
const PATIENCE_MS = 60_000
/** How long one attempt may take, in ms. */
const ATTEMPT_MS_MAX = 15_000
const PAUSE_MS_MIN = 100
const PAUSE_MS_MAX = 2_000
/** The server, or a proxy before it, says that it cannot answer now. */
const PASSING = new Set([429, 502, 503, 504])

interface Session {
  id: string
  user_id: string | null
  configs: JsonObject
  created_at: string
}

interface SessionEvent {
  id: string
  session_id: string
  seq: number
  type: string
  data: JsonObject
  created_at: string
}

/** What is used of a message's answer. */
export interface Message {
  id: string
  seq: number
}

/** An entry of a log, in its place among the others. */
export interface TimelineItem {
  kind: 'message' | 'event'
  seq: number
  id: string
  session_id: string
  created_at: string
  type?: string
  data?: JsonObject
  format?: string
  blob?: JsonObject
}

interface Page<Item> {
  items: Item[]
  has_more: boolean
  next_cursor: string
}

interface Request {
  method: 'GET' | 'POST'
  path: string
  body?: string
  idempotency_key?: string
}

/** An answer of the server, or what stood in its way and how long the server asks us to wait. */
type Attempt = { status: number; text: string; replayed: boolean } | { obstacle: string; wait_ms: number }

export interface ApiOptions {
  url: string
  token: string
  /** Told when a request finds the server away for the first time, and when an answer comes again. */
  onAway: (obstacle: string) => void
  onBack: () => void
}

/**
 * The operations of Annals that the replay uses. A request that breaks is sent again, for a minute: reads ask
 * for the same again, and every write carries an idempotency key, so that a write which had been stored before
 * its answer was lost is answered and not stored twice.
 */
export class AnnalsApi {
  /** Requests sent again, and how many of them the server had carried out the first time. */
  readonly repeated = { sent: 0, stored_before: 0 }
  readonly #options: ApiOptions
  #away = false

  constructor(options: ApiOptions) {
    this.#options = options
  }

  /** Checks address and token, without patience. */
  async ping(): Promise<void> {
    const attempt = await this.#attempt({ method: 'GET', path: '/ping' })
    if ('obstacle' in attempt) {
      throw new ReplayFailure(
        `No Annals answers at ${this.#options.url} (${attempt.obstacle}). Start it with "npm start", or name another with --url.`,
      )
    }
    if (attempt.status === 401) {
      throw new ReplayFailure(
        `${this.#options.url} does not know this API key. Make one with "npx annals token create --project default --name replay".`,
      )
    }
    read(attempt, 'GET /ping')
  }

  createSession(user: string, configs: JsonObject, idempotency_key: string): Promise<Session> {
    const body = JSON.stringify({ user, configs })
    return this.#request({ method: 'POST', path: '/session', body, idempotency_key })
  }

  addEvent(
    session_id: string,
    type: string,
    data: JsonObject,
    idempotency_key: string,
  ): Promise<SessionEvent> {
    const body = JSON.stringify({ type, data })
    return this.#request({ method: 'POST', path: `/session/${session_id}/events`, body, idempotency_key })
  }

  addMessage(session_id: string, blob: JsonObject, idempotency_key: string): Promise<Message> {
    const body = JSON.stringify({ blob })
    return this.#request({ method: 'POST', path: `/session/${session_id}/messages`, body, idempotency_key })
  }

  /** All messages of a session in a provider's format. */
  async messages(session_id: string, format: string): Promise<JsonObject[]> {
    const path = `/session/${session_id}/messages?format=${format}`
    return (await this.#request<{ items: JsonObject[] }>({ method: 'GET', path })).items
  }

  sessions(query: Record<string, string | number | boolean>): AsyncGenerator<Session> {
    return this.#walk('/session', query)
  }

  timeline(
    session_id: string,
    query: Record<string, string | number | boolean>,
  ): AsyncGenerator<TimelineItem> {
    return this.#walk(`/session/${session_id}/timeline`, query)
  }

  /** Every item of a list, page by page. */
  async *#walk<Item>(path: string, query: Record<string, string | number | boolean>): AsyncGenerator<Item> {
    const parameters = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) parameters.set(name, String(value))
    for (;;) {
      const page = await this.#request<Page<Item>>({ method: 'GET', path: `${path}?${parameters}` })
      yield* page.items
      if (!page.has_more) return
      parameters.set('cursor', page.next_cursor)
    }
  }

  async #request<Data>(request: Request): Promise<Data> {
    const name = `${request.method} ${request.path}`
    const began = performance.now()
    for (let sent = 1; ; sent++) {
      const attempt = await this.#attempt(request)
      if ('status' in attempt) {
        this.#noteBack()
        if (sent > 1 && attempt.replayed) this.repeated.stored_before += 1
        return read(attempt, name) as Data
      }
      this.#noteAway(attempt.obstacle)
      // Twice as long each time, with chance in it, so that those who wait do not all come back at once.
      const pause = Math.min(PAUSE_MS_MIN * 2 ** (sent - 1), PAUSE_MS_MAX) * (0.5 + Math.random() / 2)
      const wait = Math.max(pause, attempt.wait_ms)
      if (performance.now() - began + wait > PATIENCE_MS) {
        throw new ReplayFailure(
          `${name} got no answer for ${PATIENCE_MS / 1000} s (${attempt.obstacle}). Is the server at ${this.#options.url} still there?`,
        )
      }
      await sleep(wait)
      this.repeated.sent += 1
    }
  }

  async #attempt({ method, path, body, idempotency_key }: Request): Promise<Attempt> {
    try {
      const response = await fetch(`${this.#options.url}/api/v1${path}`, {
        method,
        headers: {
          authorization: `Bearer ${this.#options.token}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(idempotency_key !== undefined && { 'idempotency-key': idempotency_key }),
        },
        ...(body !== undefined && { body }),
        signal: AbortSignal.timeout(ATTEMPT_MS_MAX),
      })
      const text = await response.text()
      const { status, headers } = response
      if (PASSING.has(status)) {
        return {
          obstacle: `it answered ${status}`,
          wait_ms: Number(headers.get('retry-after') ?? 0) * 1000 || 0,
        }
      }
      return { status, text, replayed: headers.get('idempotent-replayed') === 'true' }
    } catch (error) {
      return { obstacle: describe(error), wait_ms: 0 }
    }
  }

  #noteAway(obstacle: string): void {
    if (!this.#away) this.#options.onAway(obstacle)
    this.#away = true
  }

  #noteBack(): void {
    if (this.#away) this.#options.onBack()
    this.#away = false
  }
}

/** The data in an answer's envelope. */
function read({ status, text }: { status: number; text: string }, name: string): unknown {
  try {
    const envelope = JSON.parse(text) as { code: number; error: string; msg: string; data?: unknown }
    if (envelope.code === 0) return envelope.data
    if (envelope.error) throw new ReplayFailure(`${name} was refused: ${envelope.error}. ${envelope.msg}`)
  } catch (error) {
    if (error instanceof ReplayFailure) throw error
  }
  throw new ReplayFailure(`${name} was answered with status ${status} by something that is not Annals.`)
}

function describe(error: unknown): string {
  const { cause, message } = error as Error & { cause?: { code?: string; message?: string } }
  return cause?.code ?? cause?.message ?? message
}
