import { createHash } from 'node:crypto'

/** The namespace of all names that adapters turn into ids (RFC 9562, section 5.5). It must never change. */
const NAMESPACE = Buffer.from('6f2c1f0a4d0e5b7c9a3d8e1b7c5f2a90', 'hex')

/**
 * The UUIDv5 of a list of strings: the same list gives the same id in every process and every language. The first one
 * names the framework, so that two adapters never share a session by accident.
 */
export function stableId(...names: string[]): string {
  const bytes = createHash('sha1').update(NAMESPACE).update(JSON.stringify(names)).digest().subarray(0, 16)
  bytes[6] = (bytes[6]! & 0x0f) | 0x50
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  // recheck: 32 digits.
  return bytes.toString('hex').replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, '$1-$2-$3-$4-$5')
}

/** An Idempotency-Key made of what the framework calls a write: 64 hexadecimal digits, whatever the names' lengths. */
export function idempotencyKey(...names: string[]): string {
  return createHash('sha256').update(JSON.stringify(names)).digest('hex')
}
