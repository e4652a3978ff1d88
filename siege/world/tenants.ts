import { LabFailure } from '../../lab/failure.ts'
import type { Target } from '../attackers/ground.ts'
import { type Call, Caller, dataOf } from '../http.ts'

/** The tenant that must not notice anything. */
export interface VictimTenant {
  key: string
  /** Keys that it uses so rarely that the service has to look each of them up every time. */
  rare_keys: string[]
}

/** How much the attackers have stored before they attack. */
export interface Stock {
  long_session_entries: number
  big_session_megabytes: number
  sessions: number
}

const RARE_KEYS = 64
const BATCH = 1_000
const LANES = 4

/** A project for the victim and one for the attackers, with what these need. */
export async function makeTenants(
  url: string,
  admin_token: string,
  stock: Stock,
): Promise<{ victim: VictimTenant; target: Target }> {
  const caller = new Caller(url)
  const ask = async <Data>(call: Call): Promise<Data> => {
    const answer = await caller.call({ method: 'POST', wait_ms: 60_000, ...call })
    const data = dataOf<Data>(answer)
    if (data === undefined)
      throw new LabFailure(`${call.path} was answered ${answer.outcome}: ${answer.text.slice(0, 500)}`)
    return data
  }
  const project = (name: string) =>
    ask<{ project: { id: string }; token: string }>({
      path: '/admin/v1/projects',
      key: admin_token,
      body: { name },
    })
  const token = async (project_id: string, body: object) =>
    (
      await ask<{ token: string }>({
        path: `/admin/v1/projects/${project_id}/tokens`,
        key: admin_token,
        body,
      })
    ).token
  try {
    const quiet = await project('victim')
    const rare_keys: string[] = []
    for (let at = 0; at < RARE_KEYS; at += 1)
      rare_keys.push(await token(quiet.project.id, { name: `rare-${at}` }))
    const loud = await project('attackers')
    const read_key = await token(loud.project.id, { name: 'read', scopes: ['read'] })
    const key = loud.token
    const sessions = await fill(ask, key, stock)
    const redacted = await project('attackers with redaction')
    const admin_key = await token(redacted.project.id, { name: 'admin', scopes: ['admin'] })
    await ask({ method: 'PUT', path: '/api/v1/redaction', key: admin_key, body: {} })
    const { token: expiring_token } = await ask<{ token: string }>({
      path: '/api/v1/tokens',
      key,
      body: { for: { session_id: sessions.big_session }, scopes: ['read'], ttl_s: 30 },
    })
    const keys = { key, read_key, redacted_key: redacted.token, expiring_token }
    return { victim: { key: quiet.token, rare_keys }, target: { url, ...keys, ...sessions } }
  } finally {
    caller.close()
  }
}

type Ask = <Data>(call: Call) => Promise<Data>

async function fill(ask: Ask, key: string, stock: Stock) {
  const session = async (configs: object) =>
    (await ask<{ id: string }>({ path: '/api/v1/session', key, body: { configs } })).id
  const long_session = await session({ is: 'long' })
  for (let from = 0; from < stock.long_session_entries; from += BATCH) {
    const entries = Array.from({ length: BATCH }, (_, at) => ({
      kind: 'event',
      type: 'note',
      data: { at: from + at },
    }))
    await ask({ path: `/api/v1/session/${long_session}/entries`, key, body: { entries } })
  }
  const big_session = await session({ is: 'big' })
  const content = 'The quick brown fox jumps over the lazy dog. '.repeat(23_000).slice(0, 1_040_000)
  for (let at = 0; at < stock.big_session_megabytes; at += 1)
    await ask({
      path: `/api/v1/session/${big_session}/messages`,
      key,
      body: { blob: { role: 'user', content } },
    })
  let left = stock.sessions
  await Promise.all(
    Array.from({ length: LANES }, async () => {
      while (left > 0) {
        left -= 1
        await session({ agent: `agent-${left % 7}`, run: left, note: 'x'.repeat(100) })
      }
    }),
  )
  return { long_session, big_session }
}
