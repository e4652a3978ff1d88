import type pg from 'pg'
import { describe, expect, it } from 'vitest'
import { readDatabaseUrl } from '../../src/postgres/hosts.ts'
import { singleConnection, transportOf } from '../../src/postgres/single_connection.ts'

function read(text: string) {
  const { connectionString, hosts } = readDatabaseUrl(text)
  const { host, port, database, user, password, ssl } = singleConnection({ connectionString }, 'test')
  return { host, port, database, user, password, ssl, hosts: hosts?.toString() }
}

describe('the URL of a database', () => {
  it.each([
    ['postgresql://ann:s%40cret@db/annals', { host: 'db', port: 5432, hosts: undefined }],
    ['postgres://ann:s%40cret@h1:1,h2:2/annals', { host: 'h1', port: 1, hosts: 'h1:1,h2:2' }],
    ['postgresql://ann:s%40cret@[::1]:7,h2/annals', { host: '::1', port: 7, hosts: '::1:7,h2:5432' }],
    ['postgresql://ann:s%40cret@/annals?host=h1,h2', { host: 'h1', port: 5432, hosts: 'h1:5432,h2:5432' }],
    ['postgresql://ann:s%40cret@/annals?host=h1,h2&port=1,2', { host: 'h1', port: 1, hosts: 'h1:1,h2:2' }],
    ['postgresql://ann:s%40cret@db:9/annals?target_session_attrs=read-write', { port: 9, hosts: 'db:9' }],
    ['postgresql://ann:s%40cret@/annals?host=/run/pg&port=9', { host: '/run/pg', port: 9, hosts: undefined }],
    [
      'postgresql://ann:s%40cret@/annals?host=/run/a,/run/b',
      { host: '/run/a', hosts: '/run/a:5432,/run/b:5432' },
    ],
  ])('may name several hosts: %s', (text, expected) => {
    expect(read(text)).toMatchObject({ database: 'annals', user: 'ann', password: 's@cret', ...expected })
  })

  it.each([
    ['sslmode=disable', false],
    ['sslmode=require', { rejectUnauthorized: false }],
    ['sslmode=verify-full', {}],
    ['sslmode=verify-full&sslrootcert=system', {}],
  ])('encrypts and verifies as libpq does: %s', (parameters, ssl) => {
    expect(read(`postgresql://ann@db/annals?${parameters}`).ssl).toEqual(ssl)
  })

  it.each([
    [
      'postgresql://ann:s3cret@db/annals?target_session_attrs=standby',
      /target_session_attrs=standby cannot be used/,
    ],
    ['postgresql://ann:s3cret@h1,h2,h3/annals?port=1,2', /there are 2 ports for 3 hosts/],
    ['postgresql://ann:s3c/ret@h1,h2/annals', /Invalid URL/],
  ])('is refused, without a secret: %s', (text, reason) => {
    expect(() => readDatabaseUrl(text)).toThrow(reason)
    expect(() => readDatabaseUrl(text)).not.toThrow(/s3c/)
  })
})

describe('the way to the database', () => {
  const over = (stream: object) => transportOf({ connection: { stream } } as unknown as pg.Client)

  it.each([
    ['a Unix socket', {}, 'local'],
    ['loopback', { remoteAddress: '127.0.0.1', localAddress: '127.0.0.1' }, 'local'],
    ['an address of this machine', { remoteAddress: '10.0.0.2', localAddress: '10.0.0.2' }, 'local'],
    ['another machine', { remoteAddress: '10.0.0.3', localAddress: '10.0.0.2' }, 'clear text'],
  ])('over %s', (_what, stream, transport) => {
    expect(over(stream)).toBe(transport)
  })
})
