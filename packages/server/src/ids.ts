import { randomFillSync } from 'node:crypto'
import { V7Generator } from 'uuidv7'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

// A system call for each random number is what an id would mostly cost; so they come by the thousand.
const numbers = new Uint32Array(1_024)
let used = numbers.length
const generator = new V7Generator({
  nextUint32: () => {
    if (used === numbers.length) {
      randomFillSync(numbers)
      used = 0
    }
    return numbers[used++]!
  },
})

/** A new UUIDv7: later ids sort behind earlier ones, so a primary key grows at its right edge. */
export function newId(): string {
  return generator.generate().toString()
}

/**
 * The canonical form (lower case, dashes) of a UUID that a caller sent in either case; undefined for
 * anything else, the form without dashes included, so that an id has two spellings and not four.
 */
export function parseId(text: string): string | undefined {
  return UUID.test(text) ? text.toLowerCase() : undefined
}
