import { createSocket } from 'node:dgram'
import { type AddressInfo, createServer } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { postJson } from '../../src/outgoing/post_json.ts'
import { isPublic, lookUpPublic, NAMES, namesPrivateAddress } from '../../src/outgoing/public_address.ts'

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
    'http://localhost:3000/',
    'http://LocalHost./',
    'https://hooks.localhost/',
  ])('is found in %s, however it is written', (url) => {
    expect(namesPrivateAddress(new URL(url))).toBe(true)
  })

  it.each(['https://notlocalhost/', 'https://localhost.example.com/', 'https://93.184.216.34/'])(
    'is not found in %s',
    (url) => expect(namesPrivateAddress(new URL(url))).toBe(false),
  )
})

describe('a delivery', () => {
  const own_servers = NAMES.getServers()
  const ends: Array<() => unknown> = []
  afterEach(async () => {
    for (const end of ends.splice(0)) await end()
    NAMES.setServers(own_servers)
  })

  /** Has names looked up here: each has its addresses, and one without any never gets an answer. Gives what was asked. */
  async function answerNames(addresses: Record<string, string[]>): Promise<string[]> {
    const asked: string[] = []
    const server = createSocket('udp4').on('message', (question, { port }) => {
      const end = question.indexOf(0, 12) + 1
      const name = question.toString('latin1', 13, end - 1).replaceAll(/[^\w-]/g, '.')
      const isIpv4 = question.readUInt16BE(end) === 1
      asked.push(`${isIpv4 ? 'A' : 'AAAA'} ${name}`)
      if (!addresses[name]) return
      const answers = (isIpv4 ? addresses[name] : []).map((address) =>
        Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)]),
      )
      const head = [question[0]!, question[1]!, 0x81, 0x80, 0, 1, 0, answers.length, 0, 0, 0, 0]
      server.send(Buffer.concat([Buffer.from(head), question.subarray(12, end + 4), ...answers]), port)
    })
    await new Promise<void>((resolve) => server.bind(0, '127.0.0.1', resolve))
    ends.push(() => server.close())
    NAMES.setServers([`127.0.0.1:${server.address().port}`])
    return asked
  }

  const post = (url: string) =>
    postJson({ url, headers: {}, body: '{}', to_private: false, signal: new AbortController().signal })

  it('connects to no private address, whatever DNS has answered before', async () => {
    let connections = 0
    const server = createServer(() => {
      connections += 1
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    ends.push(() => server.close())
    const { port } = server.address() as AddressInfo
    // One look-up a connection: what it gives is what was checked.
    const asked = await answerNames({ 'rebound.example': ['127.0.0.1', '10.0.0.1'] })
    for (const host of ['rebound.example', '127.0.0.1', '[::ffff:127.0.0.1]'])
      await expect(post(`http://${host}:${port}/`)).rejects.toThrow('no public address')
    expect(asked.toSorted()).toEqual(['A rebound.example', 'AAAA rebound.example'])
    expect(connections).toBe(0)
  })

  it('says what DNS has answered of a name without an address', async () => {
    await answerNames({ 'empty.example': [] })
    await expect(post('http://empty.example/')).rejects.toThrow('could not be reached: ENODATA')
  })

  it('waits for no name of others, though their servers never answer', async () => {
    await answerNames({ 'quick.example': ['93.184.216.34'] })
    const lookUp = (name: string) =>
      new Promise<unknown>((resolve) =>
        lookUpPublic(name, { all: true }, (error, found) => resolve(error ?? found)),
      )
    const stalled = Array.from({ length: 64 }, (_, n) => lookUp(`stalled-${n}.example`))
    const first = await Promise.race([lookUp('quick.example'), ...stalled])
    expect(first).toEqual([{ address: '93.184.216.34', family: 4 }])
    NAMES.cancel()
    await Promise.all(stalled)
  })
})
