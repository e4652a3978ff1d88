import dns from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'
import { type AddressInfo, createServer } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { postDelivery } from '../../src/webhooks/post_delivery.ts'
import { isPublic, namesPrivateAddress } from '../../src/webhooks/public_address.ts'

describe('an address', () => {
  it.each(['93.184.216.34', '2606:2800:220:1:248:1893:25c8:1946'])('%s is public', (address) => {
    expect(isPublic(address)).toBe(true)
  })

  it.each([
    ...['127.0.0.1', '127.255.0.9', '10.0.0.1', '172.16.5.4', '192.168.1.1', '169.254.169.254', '100.64.0.1'],
    ...['0.0.0.0', '255.255.255.255', '224.0.0.1', '240.0.0.1', '192.0.2.1', '198.18.0.1'],
    ...[
      '::1',
      '::',
      'fe80::1',
      'fc00::1',
      'fd12::1',
      'ff02::1',
      '::ffff:127.0.0.1',
      '::ffff:a00:1',
      '::127.0.0.1',
    ],
    ...[
      '64:ff9b::7f00:1',
      '64:ff9b:1::a00:1',
      '2002:7f00:1::',
      '2001::1',
      '2001:db8::1',
      'fec0::1',
      'localhost',
    ],
  ])('%s is not public', (address) => {
    expect(isPublic(address)).toBe(false)
  })

  it.each([
    'http://0x7f.1/',
    'http://2130706433/',
    'http://[::ffff:7f00:1]/',
    'http://127.1:80/',
    'http://0/',
  ])('is found in %s, however it is written', (url) => {
    expect(namesPrivateAddress(new URL(url))).toBe(true)
  })
})

describe('a delivery', () => {
  afterEach(() => {
    vi.restoreAllMocks()
    syncBuiltinESMExports()
  })

  const post = (url: string) =>
    postDelivery({ url, headers: {}, body: '{}', to_private: false, signal: new AbortController().signal })

  it('connects to no private address, whatever DNS has answered before', async () => {
    const server = createServer()
    let connections = 0
    server.on('connection', () => {
      connections += 1
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    await expect(post(`http://localhost:${port}/`)).rejects.toThrow('no public address')
    await expect(post(`http://127.0.0.1:${port}/`)).rejects.toThrow('no public address')
    await expect(post(`http://[::ffff:127.0.0.1]:${port}/`)).rejects.toThrow('no public address')
    // One look-up a connection: what it gives is what was checked.
    let looked = 0
    vi.spyOn(dns, 'lookup').mockImplementation(((
      _host: string,
      _options: object,
      done: (...given: unknown[]) => void,
    ) => {
      looked += 1
      done(null, [
        { address: '127.0.0.1', family: 4 },
        { address: '::1', family: 6 },
      ])
    }) as never)
    syncBuiltinESMExports()
    await expect(post(`http://rebound.example:${port}/`)).rejects.toThrow('no public address')
    expect(looked).toBe(1)
    expect(connections).toBe(0)
    server.close()
  })
})
