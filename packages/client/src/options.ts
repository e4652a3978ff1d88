/** How a client reaches the service. */
export interface AnnalsOptions {
  /** Where the service is; `http://127.0.0.1:8029` unless given. */
  url?: string | undefined
  /** The project's API key. */
  token: string | undefined
  /** How long one call may take in all, retries and pauses included: 30,000 ms unless given. */
  timeout_ms?: number | undefined
  /**
   * How long one attempt of a call may take before it is given up and made again: a third of `timeout_ms` unless
   * given, all of it for a call that is not retried.
   */
  attempt_timeout_ms?: number | undefined
  /** How often a call is made again at most: 5 unless given. */
  retries?: number | undefined
  /** Takes the place of the global `fetch`. It must heed the `signal` that it is given. */
  fetch?: typeof fetch | undefined
  /** Reads an answer's text; `JSON.parse` unless given, which loses digits of numbers beyond 2^53. */
  parse?: ((text: string) => unknown) | undefined
  /** Writes a request's body and its filters; `JSON.stringify` unless given. */
  stringify?: ((value: unknown) => string) | undefined
}

/** What may differ for one call. */
export interface CallOptions {
  /** Ends the call: it rejects with the signal's reason. */
  signal?: AbortSignal | undefined
  timeout_ms?: number | undefined
  attempt_timeout_ms?: number | undefined
  retries?: number | undefined
}

/** What may differ for one call that stores something new. */
export interface CreateOptions extends CallOptions {
  /**
   * The same key with the same request stores once and is answered alike. Every call has one of its own; give one
   * to repeat a call safely from another process, or after a restart.
   */
  idempotency_key?: string | undefined
}

/** What may differ for one append. */
export interface AppendOptions extends CreateOptions {
  /** Append only if the last seq of the session is still this one, 0 for an empty log; else 409 `seq_conflict`. */
  if_match?: number | undefined
}
