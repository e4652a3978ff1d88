import { hash } from 'node:crypto'
import { AnnalsError } from '../../errors.js'

const DIGEST_BYTES = 12

/**
 * A cursor is the position after a page, and a digest of that position and everything else that defined the page:
 * project, list, order, filters. So a cursor that is damaged, or used with another query, does not match its digest.
 * It is not secret: a forged one would only choose a position in the caller's own list.
 */
export class Cursors {
  private readonly query: ReadonlyArray<string | boolean | undefined>

  constructor(...query: ReadonlyArray<string | boolean | undefined>) {
    this.query = query
  }

  /** Writes a position (any text) as a cursor: URL-safe characters only. */
  write(position: string): string {
    return Buffer.concat([this.digest(position), Buffer.from(position)]).toString('base64url')
  }

  /** The position in a cursor. @throws AnnalsError invalid_cursor */
  read(cursor: string): string {
    const bytes = Buffer.from(cursor, 'base64url')
    const position = bytes.subarray(DIGEST_BYTES).toString()
    // Decoding ignores invalid characters; a cursor must be spelt exactly as it was written.
    if (
      bytes.toString('base64url') === cursor &&
      this.digest(position).equals(bytes.subarray(0, DIGEST_BYTES))
    )
      return position
    throw new AnnalsError('invalid_cursor')
  }

  private digest(position: string): Buffer {
    return hash('sha256', `${JSON.stringify(this.query)}\n${position}`, 'buffer').subarray(0, DIGEST_BYTES)
  }
}
