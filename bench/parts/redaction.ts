import { setTimeout as sleep } from 'node:timers/promises'
import { hostileKeys, hostileTexts } from '../../lab/hostile_texts.ts'
import { processorMilliseconds } from '../../lab/process_figures.ts'
import { median } from '../../lab/statistics.ts'
import type { Part } from '../part.ts'
import { newProject } from '../searched_project.ts'
import type { Service } from '../service.ts'
import { callApi } from '../sessions.ts'

const BYTES = 1_000_000
/** Nodes follow a project's settings within five seconds. */
const SETTINGS_MS = 6_000
const RULES = ['secrets', 'personal'].map((detector) => ({ what: { detector }, do: 'mask', when: 'write' }))

/** What all rules cost beside none: the service's processor time for the same request, at its least of some rounds. */
export const redaction: Part = {
  name: 'redaction',
  describe: 'what all detectors cost of the processor for 1 MB of hostile text, of hundreds of kinds',
  run: async (ctx) => {
    const database = await ctx.createDatabase()
    const service = await ctx.startService(database)
    const plain = await prepare(service, 'plain')
    const redacted = await prepare(service, 'redacted', RULES)
    await sleep(SETTINGS_MS)
    const keys = hostileKeys(BYTES).filter((_, at) => ctx.full || at % 7 === 0)
    const kinds = [...hostileTexts(BYTES), ...keys]
    const chosen = ctx.quick ? kinds.slice(0, 10) : kinds
    await ctx.warmUp(async () => {
      for (const [, json] of kinds.slice(0, 10)) await append(redacted, json)
    })
    const costs: Array<{ kind: string; ms: number; plain_ms: number }> = []
    for (const [kind, json] of chosen) {
      const least = { plain: Number.POSITIVE_INFINITY, redacted: Number.POSITIVE_INFINITY }
      for (let round = 0; round < Math.max(ctx.rounds, 2); round++) {
        least.plain = Math.min(least.plain, await append(plain, json))
        least.redacted = Math.min(least.redacted, await append(redacted, json))
      }
      costs.push({ kind, ms: least.redacted - least.plain, plain_ms: least.plain })
    }
    costs.sort((one, other) => other.ms - one.ms)
    ctx.detail('costs', costs)
    const all = costs.map(({ ms }) => ms)
    const figure = { unit: 'ms' as const, better: 'lower' as const }
    return [
      {
        ...figure,
        name: `1 MB of hostile text, the dearest of ${all.length} kinds, processor`,
        values: [all[0]!],
        at_least: 50,
        note: costs[0]!.kind,
      },
      { ...figure, name: 'the median of these kinds', values: [median(all)] },
      { ...figure, name: 'kinds over 50 ms', values: [all.filter((ms) => ms > 50).length], unit: 'ratio' },
    ]
  },
}

interface Prepared {
  service: Service
  session: string
}

async function prepare(node: Service, name: string, rules?: object[]): Promise<Prepared> {
  const { service, id } = await newProject(node, name)
  if (rules) {
    const path = `/admin/v1/projects/${id}/tokens`
    const body = JSON.stringify({ name: 'rules', scopes: ['admin'] })
    const admin = { ...node, token: node.admin_token }
    const { token } = await callApi<{ token: string }>(admin, { method: 'POST', path, body })
    const put = { method: 'PUT', path: '/api/v1/redaction', body: JSON.stringify({ rules }) }
    await callApi({ ...node, token }, put)
  }
  const made = { method: 'POST', path: '/api/v1/session', body: '{}' }
  return { service, session: (await callApi<{ id: string }>(service, made)).id }
}

/** Processor time of the service for one request. */
async function append({ service, session }: Prepared, json: string): Promise<number> {
  const before = processorMilliseconds(service.pid)
  const body = `{"type":"said","data":{"text":${json}}}`
  await callApi(service, { method: 'POST', path: `/api/v1/session/${session}/events`, body })
  return processorMilliseconds(service.pid) - before
}
