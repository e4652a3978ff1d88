/** Exit codes, by which a script can tell failures apart. `docs/cli.md` explains each. */
export const EXIT_CODES = {
  ok: 0,
  /** Refused or failed, with the reason. */
  failed: 1,
  /** Invalid usage: an unknown option, a filter that is not JSON. */
  usage: 2,
  not_found: 3,
  /** No token, an invalid one, or one without the necessary scope. */
  not_permitted: 4,
  /** The service or its database is unavailable or overloaded. Retry later. */
  unavailable: 5,
  /** A conflict: another last seq, a session with this id, a key used for another request. */
  conflict: 6,
  /** A bug. */
  fault: 70,
  /** Ended by SIGINT or SIGTERM: 128 plus SIGINT's number, as in shells. */
  interrupted: 130,
  /** The reader of the output closed the pipe, as `head` does: 128 plus SIGPIPE's number. */
  pipe_closed: 141,
} as const

/** The exit code for an API error, by its HTTP status; 0 means that the service did not answer. */
export function exitCodeOfStatus(status: number): number {
  if (status === 400 || status === 405 || status === 413 || status === 415) return EXIT_CODES.usage
  if (status === 401 || status === 403) return EXIT_CODES.not_permitted
  if (status === 404) return EXIT_CODES.not_found
  if (status === 409 || status === 422) return EXIT_CODES.conflict
  if (status === 0 || status === 429 || (status >= 502 && status <= 504)) return EXIT_CODES.unavailable
  return EXIT_CODES.failed
}
