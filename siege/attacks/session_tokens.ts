import { generateKeyPairSync, randomUUID, sign } from 'node:crypto'
import type { Attack } from '../attackers/attack.ts'
import { type Ground, head } from '../attackers/ground.ts'
import { dataOf } from '../http.ts'
import { newSessions } from './new_sessions.ts'

const LANES = 48
const TOKENS = 16
const stranger = generateKeyPairSync('ed25519').privateKey

type Trick = (ground: Ground, genuine: string, own: string) => Promise<void>

const json = (part: string) =>
  JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>
const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Asks for a session; whatever must not be reached and is, ends the siege with a finding. */
async function reach(ground: Ground, key: string, session: string, isReachable = false): Promise<void> {
  const { outcome } = await ground.ask({ path: `/api/v1/session/${session}/timeline?limit=1`, key })
  if (outcome === 200 && !isReachable) throw new Error(`a token reached ${session}, which it must not`)
}

/** Each is another token than all before it, so that nothing is remembered of it. */
const TRICKS: Trick[] = [
  (ground, genuine) => reach(ground, genuine, ground.target.long_session),
  (ground, genuine) => reach(ground, genuine, randomUUID()),
  // It may live for some seconds yet.
  (ground) => reach(ground, ground.target.expiring_token, ground.target.big_session, true),
  (ground, genuine, own) => {
    const [header = '', claims = ''] = genuine.split('.')
    return reach(
      ground,
      `${part({ ...json(header), alg: 'none' })}.${part({ ...json(claims), jti: randomUUID() })}.`,
      own,
    )
  },
  (ground, genuine, own) => {
    const [header = '', claims = ''] = genuine.split('.')
    const signed = `${header}.${part({ ...json(claims), jti: randomUUID() })}`
    return reach(ground, `${signed}.${sign(null, Buffer.from(signed), stranger).toString('base64url')}`, own)
  },
  (ground, genuine) => {
    const [header = '', claims = '', signature = ''] = genuine.split('.')
    const changed = { ...json(claims), jti: randomUUID(), for: { session_id: ground.target.long_session } }
    return reach(ground, `${header}.${part(changed)}.${signature}`, ground.target.long_session)
  },
  (ground, genuine, own) => {
    const [header = '', claims = ''] = genuine.split('.')
    return reach(ground, `${header}.${claims}.${'A'.repeat(ground.random.integer(1, 12_000))}`, own)
  },
]

export const sessionTokens: Attack = {
  name: 'session-tokens',
  does: 'with tokens for one session: guesses at others, sends expired and forged ones, and opens tails to their limits',
  answers: [200, 201, 401, 403, 404, 429, 431, 503, 'closed'],
  async strike(ground) {
    const [own] = await newSessions(ground, 1)
    const body = { for: { session_id: own }, scopes: ['read', 'append'], ttl_s: 600 }
    const tokens: string[] = []
    while (tokens.length < TOKENS && !ground.isOver) {
      const answer = await ground.ask({
        method: 'POST',
        path: '/api/v1/tokens',
        key: ground.target.key,
        body,
      })
      const { token } = dataOf<{ token: string }>(answer) ?? {}
      if (token) tokens.push(token)
    }
    if (tokens.length === 0) return
    let next = 0
    const guesses = ground.lanes(LANES, () => {
      next += 1
      return TRICKS[next % TRICKS.length]!(ground, tokens[next % tokens.length]!, own!)
    })
    for (let at = 0; at < ground.scaled(200, 600) && !ground.isOver; at += 1) {
      const socket = await ground.open({ isStalled: true })
      const headers = { Authorization: `Bearer ${tokens[at % tokens.length]}`, Accept: 'text/event-stream' }
      socket?.write(head('GET', `/api/v1/session/${own}/timeline`, headers))
    }
    await guesses
  },
}
