import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Annals } from '@annals/client'

/** A zip with a SKILL.md. */
const SKILL = Buffer.from(
  'UEsDBBQAAAAAAAAAIVwfNhQLLwAAAC8AAAAIAAAAU0tJTEwubWQtLS0KbmFtZTogbG9vay11cApkZXNjcmlwdGlvbjogTG9vayBpdCB1cC4KLS0tClBLAQIUAxQAAAAAAAAAIVwfNhQLLwAAAC8AAAAIAAAAAAAAAAAAAACkgQAAAABTS0lMTC5tZFBLBQYAAAAAAQABADYAAABVAAAAAAA=',
  'base64',
)

/** How long a request may be refused as overloaded: busy processors have a pause sooner than a queue that others fill. */
const OVERLOADED_MS_MAX = 2_000
const PAUSE_MS = 200

/**
 * Has every operation of a project served, each at the first attempt that is not refused as overloaded, and leaves no
 * session behind. Returns how many were. @throws on the first operation that is not served
 */
export async function callEveryOperation(url: string, token: string): Promise<number> {
  let overloaded = 0
  const ask: typeof fetch = async (input, init) => {
    const deadline = performance.now() + OVERLOADED_MS_MAX
    for (;;) {
      const answer = await fetch(input, init)
      if (answer.status !== 503 || performance.now() > deadline) return answer
      const { error } = (await answer.clone().json()) as { error: string }
      if (error !== 'overloaded') return answer
      overloaded += 1
      await sleep(PAUSE_MS)
    }
  }
  const annals = new Annals({ url, token, retries: 0, fetch: ask })
  const user = randomUUID()
  try {
    await callAll(annals, user, async (path) => {
      const { ok, status } = await ask(`${url}/api/v1${path}`, {
        headers: { authorization: `Bearer ${token}` },
      })
      if (!ok) throw new Error(`${path} was answered ${status}`)
    })
  } catch (error) {
    await annals.users.erase(user).catch(() => {})
    throw error
  }
  await annals.users.erase(user)
  return overloaded
}

async function callAll(annals: Annals, user: string, get: (path: string) => Promise<void>): Promise<void> {
  await annals.ping()
  const session_id = await useSessions(annals, user)
  await learn(annals, user, session_id)
  await run(annals, session_id)
  for (const what of ['observing_status', 'task']) await get(`/session/${session_id}/${what}`)
  const hook = await annals.webhooks.create({ url: 'https://example.com/', events: ['message'] })
  await annals.webhooks.list()
  await annals.webhooks.delete(hook.id)
  await annals.search('words').page()
  await annals.recall('words')
  await annals.tools()
  await annals.usage()
  await annals.users.list().page()
  await annals.users.resources(user)
}

async function useSessions({ sessions, blobs }: Annals, user: string): Promise<string> {
  const { id } = await sessions.create({ user, configs: { a: 1 } })
  const { sha256 } = await blobs.put(new Uint8Array(randomBytes(300_000)))
  await blobs.get(sha256)
  await sessions.append(id, {
    type: 'note',
    data: { file: { annals_blob: sha256, media_type: 'application/octet-stream' } },
  })
  const message = await sessions.appendMessage(id, {
    blob: { role: 'user', content: 'words' },
    meta: { a: 1 },
  })
  await sessions.appendBatch(id, [{ kind: 'event', type: 'state', key: 'k', data: {} }], { if_match: 2 })
  await sessions.patchMessageMeta(id, message.id, { b: 2 })
  await sessions.configs.replace(id, { b: 1 })
  await sessions.configs.merge(id, { c: 1 })
  await sessions.update(id, { expires_in_s: 3_600 })
  await sessions.compact(id, { to_seq: message.seq, summary: { blob: { role: 'user', content: 'sum' } } })
  const { new_session_id } = await sessions.copy(id)
  await sessions.appendToSessions([
    { session_id: id, entries: [{ kind: 'event', type: 'note', data: {} }], configs_patch: { d: 1 } },
    { session_id: new_session_id, entries: [{ kind: 'event', type: 'note', data: {} }] },
  ])
  await sessions.retract(new_session_id, { last: 1 })
  await sessions.delete(new_session_id)
  await sessions.get(id)
  await sessions.list({ user }).page()
  await sessions.list({ filter_by_configs: { c: 1 } }).page()
  for (const list of [sessions.events(id), sessions.messages(id), sessions.timeline(id), sessions.latest(id)])
    await list.page()
  await sessions.context(id)
  await sessions.tokenCounts(id)
  return id
}

async function run({ runs, sessions }: Annals, session_id: string): Promise<void> {
  const note = { mode: 'queue', kind: 'event', type: 'note', data: {} } as const
  await runs.withdraw(session_id, (await runs.send(session_id, note)).id)
  const { id } = await runs.send(session_id, note)
  await runs.inbox(session_id).page()
  const { fence } = await runs.takeLease(session_id, { owner: 'one', ttl_ms: 30_000 })
  await runs.renewLease(session_id, { fence, ttl_ms: 30_000 })
  await sessions.appendBatch(session_id, [], { apply: [id], fence })
  const request = await runs.request(session_id, { kind: 'question', text: 'Which?' }, { fence })
  await runs.requests({ session_id }).page()
  await runs.resolve(request.id, { decision: 'answer', answer: 'This.' })
  await runs.releaseLease(session_id, fence)
  await runs.send(session_id, note)
  for (const claimed of await runs.claim({ owner: 'one', max: 1 }))
    await runs.releaseLease(claimed.session_id, claimed.fence)
  await runs.list({ state: 'queued' }).page()
}

async function learn(
  { learningSpaces: spaces, skills }: Annals,
  user: string,
  session_id: string,
): Promise<void> {
  const { id } = await spaces.create({ user, meta: { a: 1 } })
  await spaces.merge(id, { b: 1 })
  await spaces.get(id)
  await spaces.list({ filter_by_meta: { b: 1 } }).page()
  await spaces.setPolicy(id, { mode: 'suggest' })
  await spaces.policy(id)
  await spaces.learn(id, session_id)
  await spaces.sessions(id)
  await spaces.session(id, session_id)
  await spaces.usage(id)
  const statement = await spaces.addStatement(id, { text: 'Look it up.' })
  await spaces.changeStatement(statement.id, { text: 'Look it up first.' })
  await spaces.feedback(id, { statement_ids: [statement.id], session_id, helped: true })
  await spaces.statements(id).page()
  await spaces.context(id, { q: 'look' })
  await spaces.history(id).page()
  const skill = await skills.create(new Uint8Array(SKILL), { user })
  await skills.get(skill.id)
  await skills.file(skill.id, 'SKILL.md')
  await skills.download(skill.id)
  await skills.list({ user }).page()
  await spaces.includeSkill(id, skill.id)
  await spaces.skills(id)
  await spaces.excludeSkill(id, skill.id)
  await skills.delete(skill.id)
  await spaces.delete(id)
}
