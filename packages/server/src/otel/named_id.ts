import { hash } from 'node:crypto'

/** A UUIDv5: the same for the same name below the same UUID, wherever and whenever it is made. */
export function namedId(namespace: string, name: string): string {
  const digest = Buffer.from(
    hash(
      'sha1',
      Buffer.concat([Buffer.from(namespace.replaceAll('-', ''), 'hex'), Buffer.from(name)]),
      'hex',
    ),
    'hex',
  )
  digest[6] = (digest[6]! & 0x0f) | 0x50
  digest[8] = (digest[8]! & 0x3f) | 0x80
  const text = digest.toString('hex', 0, 16)
  return [text.slice(0, 8), text.slice(8, 12), text.slice(12, 16), text.slice(16, 20), text.slice(20)].join(
    '-',
  )
}
