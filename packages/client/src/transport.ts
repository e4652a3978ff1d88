import { pathOf, queryString } from './address.js'
import { AnnalsError, noAnswer, refusal, timedOut } from './annals_error.js'
import type { AnnalsOptions, AppendOptions } from './options.js'
import { outcomeOf, pauseBefore } from './retry.js'
import { after, onAbort, sleep } from './waiting.js'

const URL_DEFAULT = 'http://127.0.0.1:8029'
const TIMEOUT_MS_DEFAULT = 30_000
const RETRIES_DEFAULT = 5

/** One operation of the API. */
export interface Call {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** The segments of the path, not encoded. */
  path: string[]
  query?: object | undefined
  body?: unknown
  /** A body that is not JSON. */
  bytes?: Uint8Array<ArrayBuffer>
  /** The same, of parts. */
  form?: FormData
  /** The answer is bytes and no JSON: those from the first place to before the second, or all. */
  range?: readonly [from: number, to: number | undefined] | undefined
  /** The operation accepts an Idempotency-Key; every call gets one, the same for all its attempts. */
  keyed?: boolean
  /** Not retried if nobody knows whether it was done. */
  once?: boolean
  /** The error that, after an attempt with an unknown outcome, proves that this attempt succeeded. */
  done_when?: string
}

/** A call as it is sent, byte for byte the same in every attempt. */
interface Prepared {
  what: string
  url: string
  init: RequestInit
  /** The answer is bytes. */
  asks_bytes: boolean
}

interface Limits {
  deadline: number
  timeout_ms: number
  attempt_timeout_ms: number
  retries: number
  signal: AbortSignal | undefined
}

/** Sends calls: address, token, time limits, retries. */
export class Transport {
  readonly retries: number
  readonly parse: (text: string) => unknown
  readonly #url: string
  #token: string | undefined
  readonly #renew: (() => Promise<string>) | undefined
  #renewing: Promise<void> | undefined
  readonly #timeout_ms: number
  readonly #attempt_timeout_ms: number | undefined
  readonly #fetch: typeof fetch
  readonly stringify: (value: unknown) => string

  constructor(options: AnnalsOptions) {
    const url = options.url ?? URL_DEFAULT
    if (!/^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : ''))
      throw new TypeError('url must begin with http:// or https:// and name a host')
    if (!options.token && !options.renew) throw new TypeError("token is missing: pass the project's API key")
    this.#url = `${url.replace(/(?<!\/)\/+$/, '')}/api/v1`
    this.#token = options.token
    if (options.token) checkToken(options.token)
    this.#renew = options.renew
    this.#timeout_ms = options.timeout_ms ?? TIMEOUT_MS_DEFAULT
    this.#attempt_timeout_ms = options.attempt_timeout_ms
    this.retries = options.retries ?? RETRIES_DEFAULT
    // Looked up at each call and called without `this`, as a browser's fetch requires.
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init))
    this.parse = options.parse ?? JSON.parse
    this.stringify = options.stringify ?? JSON.stringify
  }

  /**
   * Makes a call, retries it where that is safe and may help, and returns the answer's `data`.
   * @throws AnnalsError, or the signal's reason if it aborts
   */
  async call<Data>(call: Call, options: AppendOptions = {}): Promise<Data> {
    const prepared = this.#prepare(call, options)
    const limits = this.#limits(options)
    let in_doubt = false
    let expired: string | undefined
    for (let attempt = 1; ; attempt++) {
      try {
        if (expired !== undefined) await this.renew(expired)
        return (await this.#attempt(prepared, limits)) as Data
      } catch (error) {
        if (!(error instanceof AnnalsError)) throw error
        if (error.status === 401 && this.#renew && expired === undefined) {
          expired = tokenOf(prepared.init)
          continue
        }
        if (in_doubt && error.error === call.done_when) return undefined as Data
        const outcome = outcomeOf(error)
        in_doubt ||= outcome === 'unknown'
        if (outcome === 'final' || (call.once && in_doubt) || attempt > limits.retries) throw error
        const pause_ms = pauseBefore(attempt, error)
        // A pause that ends after the deadline would only delay the error.
        if (performance.now() + pause_ms >= limits.deadline) throw error
        await sleep(pause_ms, limits.signal)
      }
    }
  }

  /**
   * Opens an event stream, or one of the types in `headers.accept`. The caller reads the body and ends it with the signal.
   */
  async open(call: Call, headers: Record<string, string>, signal: AbortSignal): Promise<Response> {
    const { accept = 'text/event-stream' } = headers
    const { what, url, init } = this.#prepare(call, {}, { ...headers, accept })
    try {
      await this.#authorize(init)
      let response = await this.#fetch(url, { ...init, signal })
      if (response.status === 401 && this.#renew) {
        await response.body?.cancel()
        await this.renew(tokenOf(init))
        await this.#authorize(init)
        response = await this.#fetch(url, { ...init, signal })
      }
      const type = response.headers.get('content-type')?.split(';', 1)[0] ?? 'none'
      if (response.ok && accept.split(', ').includes(type) && response.body) return response
      throw refusal(what, response, await response.text())
    } catch (error) {
      throw error instanceof AnnalsError || signal.aborted ? error : noAnswer(what, error)
    }
  }

  /**
   * Replaces a token that has expired, or soon will: once for all who find that out.
   * @throws AnnalsError: what the callback threw, or as for a call without an answer, which is tried again
   */
  async renew(expired = this.#token): Promise<void> {
    if (!this.#renew || expired !== this.#token) return
    this.#renewing ??= this.#renewed(this.#renew)
      .then((token) => {
        checkToken(token)
        this.#token = token
      })
      .finally(() => {
        this.#renewing = undefined
      })
    await this.#renewing
  }

  async #renewed(renew: () => Promise<string>): Promise<string> {
    try {
      return await renew()
    } catch (error) {
      throw error instanceof AnnalsError ? error : noAnswer('The renewal of the token', error)
    }
  }

  async #authorize({ headers }: RequestInit): Promise<void> {
    if (this.#token === undefined) await this.renew()
    ;(headers as Headers).set('authorization', `Bearer ${this.#token}`)
  }

  #prepare(call: Call, options: AppendOptions, more: Record<string, string> = {}): Prepared {
    const { method, query, body, bytes, range } = call
    const asks_bytes = 'range' in call
    const address = `${this.#url}${pathOf(call.path)}`
    // Created here, outside of any attempt: an invalid header value is the caller's error, not the network's.
    const headers = new Headers({ accept: 'application/json' })
    for (const [name, value] of Object.entries(more)) headers.set(name, value)
    if (body !== undefined) headers.set('content-type', 'application/json')
    if (bytes !== undefined) headers.set('content-type', 'application/octet-stream')
    if (asks_bytes) headers.set('accept', '*/*')
    if (range) headers.set('range', `bytes=${range[0]}-${range[1] === undefined ? '' : range[1] - 1}`)
    if (call.keyed) headers.set('idempotency-key', options.idempotency_key ?? newKey())
    if (options.if_match !== undefined) headers.set('if-match', `"${options.if_match}"`)
    if (options.fence !== undefined) headers.set('annals-fence', String(options.fence))
    const url = `${address}${queryString(query, this.stringify)}`
    // Following a redirect would turn a POST into a GET and send the token elsewhere.
    const init: RequestInit = { method, headers, redirect: 'manual' }
    if (body !== undefined) init.body = this.stringify(body)
    if (bytes !== undefined) init.body = bytes
    if (call.form !== undefined) init.body = call.form
    return { what: `${method} ${address}`, url, init, asks_bytes }
  }

  #limits({ timeout_ms = this.#timeout_ms, retries = this.retries, ...options }: AppendOptions): Limits {
    const attempt_timeout_ms =
      options.attempt_timeout_ms ?? this.#attempt_timeout_ms ?? (retries > 0 ? timeout_ms / 3 : timeout_ms)
    const deadline = performance.now() + timeout_ms
    return { deadline, timeout_ms, attempt_timeout_ms, retries, signal: options.signal }
  }

  async #attempt({ what, url, init, asks_bytes }: Prepared, limits: Limits): Promise<unknown> {
    limits.signal?.throwIfAborted()
    const attempt = new AbortController()
    const unfollow = onAbort(limits.signal, (reason) => attempt.abort(reason))
    const left_ms = limits.deadline - performance.now()
    const last = left_ms <= limits.attempt_timeout_ms
    const cancel = after(last ? left_ms : limits.attempt_timeout_ms, () => {
      attempt.abort(timedOut(what, last ? limits.timeout_ms : limits.attempt_timeout_ms))
    })
    try {
      await this.#authorize(init)
      const response = await this.#fetch(url, { ...init, signal: attempt.signal })
      if (asks_bytes && response.ok) return new Uint8Array(await response.arrayBuffer())
      const text = await response.text()
      if (!response.ok) throw refusal(what, response, text)
      return this.#dataOf(what, response, text)
    } catch (error) {
      if (error instanceof AnnalsError) throw error
      throw attempt.signal.aborted ? attempt.signal.reason : noAnswer(what, error)
    } finally {
      cancel()
      unfollow()
    }
  }

  #dataOf(what: string, response: Response, text: string): unknown {
    let cause: unknown
    try {
      const { data } = this.parse(text) as { data?: unknown }
      if (typeof data === 'object' && data !== null) return data
    } catch (error) {
      cause = error
    }
    throw refusal(what, response, text, cause)
  }
}

/** @throws TypeError: an invalid header value is the caller's error, not the network's */
function checkToken(token: string): void {
  new Headers({ authorization: `Bearer ${token}` })
}

function tokenOf({ headers }: RequestInit): string | undefined {
  return (headers as Headers).get('authorization')?.slice('Bearer '.length)
}

/** Not `randomUUID`, which browsers have only on https pages. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
