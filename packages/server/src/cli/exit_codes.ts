/** With what a command ends, so that a script can tell one failure from another. `docs/cli.md` explains each. */
export const EXIT_CODES = {
  ok: 0,
  /** Refused or failed, with a sentence that says why. */
  failed: 1,
  /** What was asked for makes no sense: an unknown option, a filter that is no JSON. */
  usage: 2,
  not_found: 3,
  /** No token, one that is not accepted, or one that may not do this. */
  not_permitted: 4,
  /** The service or its database did not answer, or asked to be left alone for a while. Later it may. */
  unavailable: 5,
  /** Something else is there: another last seq, a session of this id, a key that stands for another request. */
  conflict: 6,
  /** A fault of this program. */
  fault: 70,
  /** Ended by SIGINT or SIGTERM: 128 and SIGINT's number, as shells have it. */
  interrupted: 130,
  /** The reader of the output closed the pipe, as `head` does: 128 and SIGPIPE's number. */
  pipe_closed: 141,
} as const

/** The code for an error of the API, by its HTTP status; 0 is a service that did not answer. */
export function exitCodeOfStatus(status: number): number {
  if (status === 400 || status === 405 || status === 413 || status === 415) return EXIT_CODES.usage
  if (status === 401 || status === 403) return EXIT_CODES.not_permitted
  if (status === 404) return EXIT_CODES.not_found
  if (status === 409 || status === 422) return EXIT_CODES.conflict
  if (status === 0 || status === 429 || (status >= 502 && status <= 504)) return EXIT_CODES.unavailable
  return EXIT_CODES.failed
}
