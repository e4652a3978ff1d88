import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { TokenDirectory } from '../../../src/projects/authenticate.ts'
import { hashToken, mintToken } from '../../../src/projects/tokens/token.ts'
import { Keys, keyRow } from './fake_keys.ts'

const KEPT_MS = 4_000
const TOKEN = 'the-operators-own-token-0123456789'

let keys: Keys
let directory: TokenDirectory

beforeEach(() => {
  vi.useFakeTimers()
  keys = new Keys()
  directory = new TokenDirectory(keys, KEPT_MS)
})
afterEach(() => {
  vi.useRealTimers()
})

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms)

describe('a known token', () => {
  it('returns its project and scopes, and is asked for by its hash', async () => {
    expect(await directory.find(TOKEN)).toMatchObject({
      key_id: 'key',
      project_id: 'project',
      scopes: new Set(['read', 'write']),
    })
    expect(keys.asked).toEqual([hashToken(TOKEN).toString('hex')])
  })

  it('is told from another one over the same connection, whatever they have in common', async () => {
    const connection = {}
    await directory.find(TOKEN, connection)
    keys.rows = []
    const others = [`${TOKEN.slice(0, -1)}x`, `x${TOKEN.slice(1)}`, `${TOKEN}x`, TOKEN.slice(0, -1)]
    for (const other of others) {
      expect(await directory.find(TOKEN, connection)).toBeDefined()
      expect(directory.projectOf(TOKEN, connection)).toBe('project')
      expect(await directory.find(other, connection)).toBeUndefined()
      expect(directory.projectOf(other, connection)).toBeUndefined()
    }
  })

  it('is asked for once while it is fresh', async () => {
    for (let at = 0; at < KEPT_MS / 2; at += 100) {
      expect(await directory.find(TOKEN)).toBeDefined()
      await pass(100)
    }
    expect(keys.asked).toHaveLength(1)
  })

  it('is renewed in the background from half its age on, without making the caller wait', async () => {
    await directory.find(TOKEN)
    await pass(KEPT_MS / 2)
    keys.held = []
    expect(await directory.find(TOKEN)).toBeDefined()
    expect(keys.asked).toHaveLength(2)
    expect(await directory.find(TOKEN)).toBeDefined()
    expect(keys.asked).toHaveLength(2)
    for (const answer of keys.held) answer()
    keys.held = undefined
    await pass(KEPT_MS / 2 + 100)
    expect(await directory.find(TOKEN)).toBeDefined()
  })

  it('that is in use all the time is asked for about twice in the time that it is kept', async () => {
    for (let at = 0; at < 10 * KEPT_MS; at += 50) {
      await directory.find(TOKEN)
      await pass(50)
    }
    expect(keys.asked.length).toBeGreaterThanOrEqual(10)
    expect(keys.asked.length).toBeLessThanOrEqual(22)
  })

  it('is refused within the time that it is kept, once it is revoked', async () => {
    await directory.find(TOKEN)
    keys.rows = []
    await pass(KEPT_MS - 1)
    expect(await directory.find(TOKEN)).toBeDefined()
    await pass(1)
    expect(await directory.find(TOKEN)).toBeUndefined()
  })

  it('is refused sooner when it is in use, because it was looked up again meanwhile', async () => {
    await directory.find(TOKEN)
    keys.rows = []
    await pass(KEPT_MS / 2)
    await directory.find(TOKEN)
    await pass(0)
    expect(await directory.find(TOKEN)).toBeUndefined()
  })

  it('is not trusted longer because the answer to the look-up came late', async () => {
    keys.held = []
    const slow = directory.find(TOKEN)
    await pass(KEPT_MS / 2)
    keys.rows = []
    await pass(KEPT_MS / 2 - 1)
    for (const answer of keys.held) answer()
    keys.held = undefined
    await slow
    await pass(1)
    expect(await directory.find(TOKEN)).toBeUndefined()
  })

  it('is not trusted on the word of a look-up that is older than the time that it is kept', async () => {
    keys.held = []
    const early = directory.find(TOKEN)
    await pass(100)
    keys.rows = []
    await pass(KEPT_MS)
    const late = directory.find(TOKEN)
    for (const answer of keys.held) answer()
    keys.held = undefined
    await early
    expect(await late).toBeUndefined()
  })

  it('outlives a failure of the look-up in the background, until its time is over', async () => {
    await directory.find(TOKEN)
    keys.failure = new Error('away')
    await pass(KEPT_MS / 2)
    expect(await directory.find(TOKEN)).toBeDefined()
    await pass(KEPT_MS / 2)
    await expect(directory.find(TOKEN)).rejects.toThrow('away')
    keys.failure = undefined
    expect(await directory.find(TOKEN)).toBeDefined()
  })

  it('is refused from the moment on that it expires, though it is still remembered', async () => {
    keys.rows = [keyRow({ expires_at_ms: String(Date.now() + 1_000) })]
    expect(await directory.find(TOKEN)).toBeDefined()
    await pass(999)
    expect(await directory.find(TOKEN)).toBeDefined()
    await pass(1)
    expect(await directory.find(TOKEN)).toBeUndefined()
  })
})

describe('an unknown token', () => {
  beforeEach(() => {
    keys.rows = []
  })

  it('is asked for again after a second, since it may have been created', async () => {
    expect(await directory.find(TOKEN)).toBeUndefined()
    await pass(400)
    expect(await directory.find(TOKEN)).toBeUndefined()
    expect(keys.asked).toHaveLength(1)
    keys.rows = [keyRow()]
    await pass(600)
    expect(await directory.find(TOKEN)).toBeDefined()
  })

  it('with the form of ours that was mistyped is not asked for at all', async () => {
    const token = mintToken()
    const mistyped = token.slice(0, 20) + (token[20] === 'x' ? 'y' : 'x') + token.slice(21)
    expect(await directory.find(mistyped)).toBeUndefined()
    expect(keys.asked).toEqual([])
    await directory.find(token)
    expect(keys.asked).toHaveLength(1)
  })
})

describe('callers at the same moment', () => {
  it('share one look-up of a token', async () => {
    const found = await Promise.all(Array.from({ length: 100 }, () => directory.find(TOKEN)))
    expect(keys.asked).toHaveLength(1)
    expect(found.every((grant) => grant?.project_id === 'project')).toBe(true)
  })

  it('share its failure as well, and the next one asks anew', async () => {
    keys.failure = new Error('away')
    const ended = await Promise.allSettled([directory.find(TOKEN), directory.find(TOKEN)])
    expect(ended.map((one) => one.status)).toEqual(['rejected', 'rejected'])
    keys.failure = undefined
    expect(await directory.find(TOKEN)).toBeDefined()
    expect(keys.asked).toHaveLength(2)
  })

  it('with different tokens are answered by one statement, and do not mix', async () => {
    keys.held = []
    const first = directory.find('first'.repeat(8))
    const names = ['a', 'b', 'c']
    const found = names.map((name) => directory.find(name.repeat(32)))
    const answerFirst = keys.held[0]!
    keys.held = undefined
    keys.only = new Map(
      ['c', 'a'].map((name) => [hashToken(name.repeat(32)).toString('hex'), keyRow({ project_id: name })]),
    )
    answerFirst()
    await first
    expect((await Promise.all(found)).map((grant) => grant?.project_id)).toEqual(['a', undefined, 'c'])
    expect(keys.statements).toBe(2)
  })
})

describe('a directory that keeps nothing', () => {
  it('asks for every request', async () => {
    const unkept = new TokenDirectory(keys, 0)
    for (let n = 0; n < 3; n++) expect(await unkept.find(TOKEN)).toBeDefined()
    expect(keys.asked).toHaveLength(3)
  })
})

describe('many tokens', () => {
  it('do not grow the directory without bound: those longest unused are asked for again', async () => {
    await directory.find(TOKEN)
    for (let n = 0; n < 10_000; n++) await directory.find(`token-${n}-${'x'.repeat(32)}`)
    const before = keys.asked.length
    await directory.find(`token-9999-${'x'.repeat(32)}`)
    expect(keys.asked).toHaveLength(before)
    await directory.find(TOKEN)
    expect(keys.asked).toHaveLength(before + 1)
  })
})
