import { setTimeout as sleep } from 'node:timers/promises'
import { type LoadRequest, runLoad } from '../load.ts'
import type { BenchContext, Figure, Part } from '../part.ts'
import { interleave, ratios } from '../rounds.ts'
import { newProject } from '../searched_project.ts'
import type { Service } from '../service.ts'
import { appendsTo, callApi } from '../sessions.ts'

const SESSIONS = 200
/** Nodes follow a project's settings within five seconds. */
const SETTINGS_MS = 6_000
const USER = 'omar'

/** A project with one thing switched on, beside one with nothing. */
export const access: Part = {
  name: 'access',
  describe:
    'appends with proof, with redaction and with a session token, and audited reads, against none of it',
  run: async (ctx) => {
    const database = await ctx.createDatabase()
    const service = await ctx.startService(database)
    const plain = await prepare(ctx, service, 'plain')
    const proof = await prepare(ctx, service, 'proof', { proof: true })
    const audited = await prepare(ctx, service, 'audited', { audit_reads: 'all' })
    const redacted = await prepare(ctx, service, 'redacted', {}, true)
    const { token } = await callApi<{ token: string }>(plain.service, {
      method: 'POST',
      path: '/api/v1/tokens',
      body: JSON.stringify({ for: { user: USER }, scopes: ['read', 'append'], ttl_s: 86_400 }),
    })
    const held = { ...plain, service: { ...plain.service, token } }
    await sleep(SETTINGS_MS)
    const append = ({ service, sessions }: Prepared) => load(ctx, service, appendsTo(sessions))
    const read = ({ service, sessions }: Prepared) => load(ctx, service, pagesOf(sessions))
    const runs = await interleave(
      ctx.rounds,
      {
        append: append(plain),
        'append with proof': append(proof),
        'append with redaction': append(redacted),
        'append with a token': append(held),
        read: read(plain),
        'read with audit': read(audited),
        'read with a token': read(held),
      },
      ctx.say,
    )
    ctx.detail('runs', runs)
    const rate = (name: keyof typeof runs) => runs[name]!.map(({ per_second }) => per_second)
    const figure = (name: string, of: string, to: string, at_least: number): Figure => ({
      name,
      unit: 'ratio',
      better: 'higher',
      values: ratios(rate(of), rate(to)),
      at_least,
      aim: 1,
    })
    return [
      figure('appends with proof ÷ without', 'append with proof', 'append', 0.85),
      figure('appends with redaction ÷ without', 'append with redaction', 'append', 0.7),
      figure("appends with a user's token ÷ with a key", 'append with a token', 'append', 0.85),
      figure('audited reads ÷ reads', 'read with audit', 'read', 0.85),
      figure("reads with a user's token ÷ with a key", 'read with a token', 'read', 0.85),
    ]
  },
}

interface Prepared {
  service: Service
  sessions: string[]
}

/** A project with sessions of one user, in each of which are 50 events. */
async function prepare(
  ctx: BenchContext,
  node: Service,
  name: string,
  settings: object = {},
  is_redacted = false,
): Promise<Prepared> {
  const { service, id } = await newProject(node, name)
  const admin = { ...node, token: node.admin_token }
  if (Object.keys(settings).length > 0)
    await callApi(admin, {
      method: 'PATCH',
      path: `/admin/v1/projects/${id}`,
      body: JSON.stringify(settings),
    })
  if (is_redacted) {
    const made = await callApi<{ token: string }>(admin, {
      method: 'POST',
      path: `/admin/v1/projects/${id}/tokens`,
      body: JSON.stringify({ name: 'rules', scopes: ['admin'] }),
    })
    await callApi({ ...node, token: made.token }, { method: 'PUT', path: '/api/v1/redaction', body: '{}' })
  }
  const sessions: string[] = []
  for (let n = 0; n < (ctx.quick ? 10 : SESSIONS); n++) {
    const path = '/api/v1/session'
    const body = JSON.stringify({ user: USER, configs: { agent: 'gpt-4o' } })
    sessions.push((await callApi<{ id: string }>(service, { method: 'POST', path, body })).id)
  }
  for (const session of sessions) await fill(service, session)
  return { service, sessions }
}

async function fill(service: Service, session: string): Promise<void> {
  const entries = appendsTo([session], 50).map(({ body }) => ({ kind: 'event', ...JSON.parse(body!) }))
  const path = `/api/v1/session/${session}/entries`
  await callApi(service, { method: 'POST', path, body: JSON.stringify({ entries }) })
}

function pagesOf(sessions: readonly string[]): LoadRequest[] {
  return sessions.map((id) => ({
    method: 'GET',
    path: `/api/v1/session/${id}/timeline?limit=50&time_desc=true`,
  }))
}

function load({ seconds }: BenchContext, service: Service, requests: LoadRequest[]) {
  return () => runLoad({ services: [service], connections: 64, seconds, requests, status: 200 })
}
