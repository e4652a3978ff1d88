import { AnnalsError } from './annals_error.js'
import { List } from './list.js'
import type { CallOptions, WriteOptions } from './options.js'
import { reconnecting, type StreamOptions } from './reconnecting.js'
import { outcomeOf } from './retry.js'
import { newKey, type Transport } from './transport.js'
import type {
  AddedInput,
  Claimed,
  InboxInput,
  InboxQuery,
  Lease,
  NewInput,
  NewLease,
  NewRequest,
  RequestsQuery,
  Resolution,
  RunFrame,
  RunItem,
  RunnerRequest,
  RunsQuery,
  WorkQuery,
} from './types.js'
import { onAbort, sleep } from './waiting.js'

const TTL_MS_DEFAULT = 30_000
/** Beyond the wait that a call asks for. */
const ANSWER_MS = 10_000
/** Of the time of a lease: after how much it is renewed, how long a try may take, and the pause after one that failed. */
const RENEWAL = { after: 1 / 3, try: 1 / 4, pause: 1 / 12 }

/** A lease that is held: `signal` aborts when it is lost. */
export interface HeldLease extends Lease {
  signal: AbortSignal
}

export interface LeaseOptions extends Omit<NewLease, 'ttl_ms'> {
  /** How long the lease outlives this process, in ms; default 30,000. */
  ttl_ms?: number | undefined
  /** Ends the work: `signal` of the lease aborts, and the lease is released. */
  signal?: AbortSignal | undefined
}

/** Leases, inbox and requests of sessions. */
export class Runs {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** The sessions in a state of their run, the latest first. */
  list({ filter_by_configs, ...query }: RunsQuery, options?: CallOptions): List<RunItem> {
    return this.#list(['runs'], { ...query, filter_by_configs }, options)
  }

  /** Takes a session's lease. @throws AnnalsError leased, if another owner holds it after `wait_ms` */
  takeLease(session_id: string, lease: NewLease, options?: CallOptions): Promise<Lease> {
    const call = { method: 'POST' as const, path: ['session', session_id, 'lease'], body: lease }
    return this.#transport.call(call, waiting(lease.wait_ms, options))
  }

  /** @throws AnnalsError fenced, if another runner has taken the lease */
  renewLease(
    session_id: string,
    lease: { fence: number; ttl_ms: number },
    options?: CallOptions,
  ): Promise<Lease> {
    return this.#transport.call(
      { method: 'PUT', path: ['session', session_id, 'lease'], body: lease },
      options,
    )
  }

  async releaseLease(session_id: string, fence: number, options?: CallOptions): Promise<void> {
    const path = ['session', session_id, 'lease']
    await this.#transport.call(
      { method: 'DELETE', path, query: { fence }, done_when: 'session_not_found' },
      options,
    )
  }

  /**
   * Runs `work` while this process holds a session's lease: takes it, renews it, and releases it in the end. When it is lost,
   * or nobody can say for its whole time whether it is still held, `lease.signal` aborts: stop then. Writes with
   * `{ fence: lease.fence }` are refused from that moment on in any case.
   * @throws AnnalsError leased; and whatever `work` throws
   */
  async withLease<T>(
    session_id: string,
    options: LeaseOptions,
    work: (lease: HeldLease) => Promise<T>,
  ): Promise<T> {
    const { signal, ttl_ms = TTL_MS_DEFAULT, ...more } = options
    let asked_at = performance.now()
    const lease = await this.takeLease(session_id, { ...more, ttl_ms }, { signal })
    // A lease that was waited for began at an unknown time of the wait, and most likely at its end.
    if (more.wait_ms) asked_at = performance.now()
    const lost = new AbortController()
    const unfollow = onAbort(signal, (reason) => lost.abort(reason))
    const done = new AbortController()
    const renew = async () => {
      for (let pause_ms = ttl_ms * RENEWAL.after; ; ) {
        const left_ms = () => Math.max(asked_at + ttl_ms - performance.now(), 1)
        await sleep(Math.min(pause_ms, left_ms()), done.signal)
        const began = performance.now()
        try {
          const timeout_ms = Math.min(ttl_ms * RENEWAL.try, ANSWER_MS, left_ms())
          const limits = { timeout_ms, attempt_timeout_ms: timeout_ms, signal: done.signal }
          await this.renewLease(session_id, { fence: lease.fence, ttl_ms }, limits)
          asked_at = began
          pause_ms = ttl_ms * RENEWAL.after
        } catch (error) {
          if (done.signal.aborted) return
          const is_over = performance.now() >= asked_at + ttl_ms
          const is_final = error instanceof AnnalsError && outcomeOf(error) === 'final'
          if (is_over || is_final) return lost.abort(error)
          pause_ms = ttl_ms * RENEWAL.pause
        }
      }
    }
    const renewing = renew().catch(() => {})
    try {
      return await work({ ...lease, signal: lost.signal })
    } finally {
      unfollow()
      done.abort()
      await renewing
      // It ends by itself if this does not get through.
      const limits = { timeout_ms: Math.min(ttl_ms, ANSWER_MS) }
      await this.releaseLease(session_id, lease.fence, limits).catch(() => {})
    }
  }

  /** Sends input to a session. With an `id` of your own, also a retry from another process adds it once. */
  send(session_id: string, input: NewInput, options?: WriteOptions): Promise<AddedInput> {
    const body = { id: newId(), ...input }
    return this.#transport.call({ method: 'POST', path: ['session', session_id, 'inbox'], body }, options)
  }

  /** The pending input of a session, in order. */
  inbox(session_id: string, query: InboxQuery = {}, options?: CallOptions): List<InboxInput> {
    return this.#list(['session', session_id, 'inbox'], query, options)
  }

  /** @throws AnnalsError not_pending, if it was applied */
  async withdraw(
    session_id: string,
    input_id: string,
    reason?: string,
    options?: WriteOptions,
  ): Promise<void> {
    const path = ['session', session_id, 'inbox', input_id]
    await this.#transport.call({ method: 'DELETE', path, query: { reason } }, options)
  }

  /**
   * What happens in a session's run: input, its lease and its requests, as they are when they are sent; `after` is the
   * `place` of the last frame that was seen. It ends and reconnects as a tail does.
   * @throws AnnalsError if the service refuses
   */
  async *follow(
    session_id: string,
    { after = 0, ...options }: StreamOptions & { after?: number | undefined } = {},
  ): AsyncGenerator<RunFrame, void, undefined> {
    const call = { method: 'GET' as const, path: ['session', session_id, 'inbox'] }
    const stream = { what: 'The run', call, position: String(after) }
    let place = after
    for await (const { id, type, data } of reconnecting(this.#transport, stream, options)) {
      // The end of a lease that nobody released has no place of its own.
      place = Number(id) || place
      yield { place, event: type, data: this.#transport.parse(data) } as RunFrame
    }
  }

  /** Leases sessions that have due input and no valid lease, and returns them with it. */
  async claim(work: WorkQuery, options?: CallOptions): Promise<Claimed[]> {
    const call = {
      method: 'POST' as const,
      path: ['work', 'claim'],
      body: { ttl_ms: TTL_MS_DEFAULT, ...work },
    }
    const { items } = await this.#transport.call<{ items: Claimed[] }>(call, waiting(work.wait_ms, options))
    return items
  }

  /** Asks for an approval, or a question. With an `id` of your own, also a retry from another process asks once. */
  request(session_id: string, request: NewRequest, options?: WriteOptions): Promise<RunnerRequest> {
    const body = { id: newId(), ...request }
    return this.#transport.call({ method: 'POST', path: ['session', session_id, 'requests'], body }, options)
  }

  getRequest(request_id: string, options?: CallOptions): Promise<RunnerRequest> {
    return this.#transport.call({ method: 'GET', path: ['requests', request_id] }, options)
  }

  /** Requests of all sessions, by default the open ones. */
  requests(query: RequestsQuery = {}, options?: CallOptions): List<RunnerRequest> {
    return this.#list(['requests'], query, options)
  }

  /** Answers a request. @throws AnnalsError resolved, if somebody else has answered */
  resolve(request_id: string, resolution: Resolution, options?: CallOptions): Promise<RunnerRequest> {
    const path = ['requests', request_id, 'resolve']
    const body = { id: newId(), ...resolution }
    return this.#transport.call({ method: 'POST', path, body }, options)
  }

  /** Answers up to 20 requests, all or none. */
  async resolveAll(
    resolutions: Array<Resolution & { request_id: string }>,
    options?: CallOptions,
  ): Promise<RunnerRequest[]> {
    const body = { resolutions: resolutions.map((one) => ({ id: newId(), ...one })) }
    const call = { method: 'POST' as const, path: ['requests', 'resolve'], body }
    const { items } = await this.#transport.call<{ items: RunnerRequest[] }>(call, options)
    return items
  }

  #list<Item>(path: string[], query: object, options: CallOptions | undefined): List<Item> {
    return new List((cursor) =>
      this.#transport.call({ method: 'GET', path, query: { ...query, ...(cursor && { cursor }) } }, options),
    )
  }
}

/** The limits of a call that may wait for its answer. */
function waiting(wait_ms = 0, options: CallOptions = {}): CallOptions {
  if (wait_ms === 0) return options
  return { attempt_timeout_ms: wait_ms + ANSWER_MS, timeout_ms: wait_ms + 2 * ANSWER_MS, ...options }
}

/** A UUID; `randomUUID` is not there on all pages. */
function newId(): string {
  const digits = newKey()
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(13, 16)}-a${digits.slice(17, 20)}-${digits.slice(20)}`
}
