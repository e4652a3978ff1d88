import { hash } from 'node:crypto'

const BLOCK_BYTES = 64
const DIGEST_BYTES = 32
const INNER = 0x36
const OUTER = 0x5c

/**
 * HMAC-SHA-256 (RFC 2104) of many texts with one key, in base64url. `createHmac` makes an object for each text that takes
 * longer to make and to collect than the digest itself.
 */
export function hmacWith(key: string): (text: string) => string {
  const bytes = Buffer.from(key)
  const inner = Buffer.alloc(BLOCK_BYTES, INNER)
  const outer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES, OUTER)
  const short = bytes.length > BLOCK_BYTES ? hash('sha256', bytes, 'buffer') : bytes
  for (const [at, byte] of short.entries()) {
    inner[at]! ^= byte
    outer[at]! ^= byte
  }
  return (text) => {
    const message = Buffer.allocUnsafe(BLOCK_BYTES + Buffer.byteLength(text))
    inner.copy(message)
    message.write(text, BLOCK_BYTES)
    hash('sha256', message, 'buffer').copy(outer, BLOCK_BYTES)
    return hash('sha256', outer, 'base64url')
  }
}
