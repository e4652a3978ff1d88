import { createHash } from 'node:crypto'

/** An Idempotency-Key made of what the framework calls a write: 64 hexadecimal digits, whatever the names' lengths. */
export function idempotencyKey(...names: string[]): string {
  return createHash('sha256').update(JSON.stringify(names)).digest('hex')
}
