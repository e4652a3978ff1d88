import { randomFillSync } from 'node:crypto'
import { V7Generator } from 'uuidv7'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

// A system call per random number would be most of an id's cost, so they are fetched by the thousand.
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

const DIGITS = Buffer.from('0123456789abcdef')
const written = Buffer.from('00000000-0000-7000-8000-000000000000')

/** A new UUIDv7: later ids sort after earlier ones, so a primary key grows at its right edge. */
export function newId(): string {
  const { bytes } = generator.generate()
  // The library adds digit to digit, for which V8 makes a tree of strings, and flattens it when it is first read.
  let to = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!
    written[to++] = DIGITS[byte >> 4]!
    written[to++] = DIGITS[byte & 15]!
    if (at === 3 || at === 5 || at === 7 || at === 9) to++
  }
  return written.toString('latin1')
}

/**
 * The canonical form (lower case, dashes) of a UUID in either case; undefined for anything else, including the form
 * without dashes, so that an id has two spellings instead of four.
 */
export function parseId(text: string): string | undefined {
  return UUID.test(text) ? text.toLowerCase() : undefined
}
