import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { TokenDirectory } from '../../../src/projects/authenticate.ts'
import { hashToken } from '../../../src/projects/tokens/token.ts'
import { Keys } from './fake_keys.ts'

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

describe('keys that are guessed', () => {
  const guess = (n: number) => `guess-${n}-${'x'.repeat(32)}`
  const GUESSER = { address: '203.0.113.7' }

  it('push no valid key out', async () => {
    await directory.find(TOKEN)
    keys.rows = []
    for (let n = 0; n < 15_000; n++) await directory.find(guess(n))
    expect(directory.find(TOKEN)).toMatchObject({ project_id: 'project' })
    expect(keys.asked).toHaveLength(15_001)
  })

  it('take one statement at a time, however many they are', async () => {
    keys.rows = []
    keys.held = []
    const guesses = Array.from({ length: 1_000 }, (_, n) => directory.find(guess(n), undefined, GUESSER))
    await pass(0)
    expect(keys.statements).toBe(1)
    const [answer] = keys.held
    keys.held = undefined
    answer!()
    expect(await Promise.all(guesses)).toEqual(Array(1_000).fill(undefined))
    expect(keys.statements).toBe(11)
  })

  it('keep no valid key from being renewed', async () => {
    await directory.find(TOKEN)
    keys.held = []
    directory.find(guess(0), undefined, GUESSER)
    directory.find(guess(1), undefined, GUESSER)
    await pass(KEPT_MS / 2)
    expect(await directory.find(TOKEN)).toBeDefined()
    expect(keys.asked.at(-1)).toBe(hashToken(TOKEN).toString('hex'))
    expect(keys.statements).toBe(3)
  })

  it('let a key of another address through with the next statement, and from beyond their room', async () => {
    keys.held = []
    const ended: unknown[] = []
    const tell = (error: unknown) => ended.push(error)
    for (let n = 0; n < 6_000; n++) Promise.resolve(directory.find(guess(n), undefined, GUESSER)).catch(tell)
    await pass(0)
    expect(ended).toHaveLength(999)
    expect(ended[0]).toMatchObject({ error: 'overloaded' })
    const other = directory.find(TOKEN, undefined, { address: '203.0.113.8' })
    keys.held[0]!()
    await pass(0)
    expect(keys.statements).toBe(2)
    keys.held[1]!()
    expect(await other).toMatchObject({ project_id: 'project' })
  })
})
