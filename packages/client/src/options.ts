/** How a client reaches the service. */
export interface AnnalsOptions {
  /** The service's URL; default `http://127.0.0.1:8029`. */
  url?: string | undefined
  /** The project's API key, or a token that was made with one; it may be left out with `renew`. */
  token?: string | undefined
  /**
   * Gets a token: the first one if none is given, and another when one expires. A call is then repeated with it, and a
   * tail goes on where it was.
   */
  renew?: (() => Promise<string>) | undefined
  /** Time limit of a call, including retries and pauses, in ms; default 30,000. */
  timeout_ms?: number | undefined
  /**
   * Time limit of one attempt before it is given up and retried, in ms; default a third of `timeout_ms`, or all of it
   * for a call that is not retried.
   */
  attempt_timeout_ms?: number | undefined
  /** Most retries of a call; default 5. */
  retries?: number | undefined
  /** Replaces the global `fetch`. It must respect the `signal` that it is given. */
  fetch?: typeof fetch | undefined
  /** Parses an answer's text; default `JSON.parse`, which loses digits of numbers beyond 2^53. */
  parse?: ((text: string) => unknown) | undefined
  /** Serializes a request's body and filters; default `JSON.stringify`. */
  stringify?: ((value: unknown) => string) | undefined
}

/** Options of one call. */
export interface CallOptions {
  /** Ends the call: it rejects with the signal's reason. */
  signal?: AbortSignal | undefined
  timeout_ms?: number | undefined
  attempt_timeout_ms?: number | undefined
  retries?: number | undefined
}

/** Options of one call that creates something. */
export interface CreateOptions extends CallOptions {
  /**
   * Repeating the same request with the same key stores it once and returns the same answer. By default every call
   * gets its own key; set one to retry safely from another process, or after a restart.
   */
  idempotency_key?: string | undefined
}

/** Options of one write to a session. */
export interface WriteOptions extends CallOptions {
  /** Write only if the session's lease still has this fence; otherwise 409 `fenced`. */
  fence?: number | undefined
}

/** Options of one append. */
export interface AppendOptions extends CreateOptions, WriteOptions {
  /** Append only if the session's last seq still has this value, 0 for an empty log; otherwise 409 `seq_conflict`. */
  if_match?: number | undefined
}

/** Options of one append of several entries. */
export interface BatchOptions extends AppendOptions {
  /** Inputs of the inbox that become entries in the same commit, before the others; otherwise 409 `not_pending`. */
  apply?: string[] | undefined
}

/** Options of one append of a message. */
export interface MessageOptions extends AppendOptions {
  /**
   * Files that become attachments of the message. It has to be in `acontext` format, with a part for each file that has
   * the file's name here as its `file_field`.
   */
  files?: Record<string, Blob | File> | undefined
}
