import { uuidv7 } from 'uuidv7'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** A new UUIDv7: later ids sort behind earlier ones, so a primary key grows at its right edge. */
export function newId(): string {
  return uuidv7()
}

/**
 * The canonical form (lower case, dashes) of a UUID that a caller sent in either case; undefined for
 * anything else, the form without dashes included, so that an id has two spellings and not four.
 */
export function parseId(text: string): string | undefined {
  return UUID.test(text) ? text.toLowerCase() : undefined
}
