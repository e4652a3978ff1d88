import { Agent, request } from 'node:http'
import type { LoadRequest } from '../load.ts'
import type { BenchContext, Figure, Part } from '../part.ts'
import type { Service } from '../service.ts'
import { callApi, createSessions, toolCall } from '../sessions.ts'

const IDS = 200

/** Whether the time of an answer tells that an id exists in another project. */
export const foreignIds: Part = {
  name: 'foreign-ids',
  describe: 'whether the time of a 404 tells an id of another project from one that nobody has',
  run: async (ctx) => {
    const service = await ctx.startService(await ctx.createDatabase())
    const sessions = await createSessions(service, ctx.some(IDS))
    const spaces: string[] = []
    for (let count = 0; count < ctx.some(IDS); count++) {
      const space = { method: 'POST', path: '/api/v1/learning_spaces', body: '{}' }
      spaces.push((await callApi<{ id: string }>(service, space)).id)
    }
    const stranger = await createStranger(service)
    const operations = [...ofSessions(sessions), ...ofSpaces(spaces)]
    const pairs = ctx.quick ? 4 : 1_000
    await round(ctx, stranger, operations, Math.ceil(pairs / 2))
    const distances: number[] = []
    for (let at = 1; at <= ctx.rounds; at++) {
      ctx.say(`round ${at} of ${ctx.rounds}`)
      const shares = await round(ctx, stranger, operations, pairs)
      ctx.detail(`round ${at}: share of pairs in which the other project's id took longer`, shares)
      const values = Object.values(shares)
      distances.push(Math.abs(values.reduce((sum, share) => sum + share, 0) / values.length - 0.5))
    }
    const figure: Figure = {
      name: 'share of pairs in which the other project’s id took longer, distance from one half',
      unit: 'ratio',
      better: 'lower',
      values: distances,
      at_least: 0.02,
      charted: false,
    }
    return [figure]
  },
}

interface Operation {
  name: string
  ids: string[]
  on(id: string): LoadRequest
}

function ofSessions(ids: string[]): Operation[] {
  const event = JSON.stringify(toolCall(1))
  const message = JSON.stringify({ blob: { role: 'user', content: 'hello' } })
  const shapes: Array<[method: string, rest: string, body?: string]> = [
    ['GET', ''],
    ['DELETE', ''],
    ['GET', '/configs'],
    ['PUT', '/configs', '{"configs":{"a":1}}'],
    ['GET', '/timeline'],
    ['GET', '/messages'],
    ['POST', '/events', event],
    ['POST', '/messages', message],
    ['POST', '/copy', '{}'],
  ]
  return shapes.map(([method, rest, body]) => ({
    name: `${method} session${rest}`,
    ids,
    on: (id) => ({ method, path: `/api/v1/session/${id}${rest}`, ...(body && { body }) }),
  }))
}

function ofSpaces(ids: string[]): Operation[] {
  return ['GET', 'DELETE'].map((method) => ({
    name: `${method} learning space`,
    ids,
    on: (id) => ({ method, path: `/api/v1/learning_spaces/${id}` }),
  }))
}

async function createStranger(service: Service): Promise<Service> {
  const body = JSON.stringify({ name: 'stranger' })
  const admin = { ...service, token: service.admin_token }
  const { token } = await callApi<{ token: string }>(admin, {
    method: 'POST',
    path: '/admin/v1/projects',
    body,
  })
  return { ...service, token }
}

/** Of each operation, the share of pairs in which the id of another project took longer than one that nobody has. */
async function round(ctx: BenchContext, stranger: Service, operations: Operation[], pairs: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  ctx.atEnd(() => agent.destroy())
  const longer = new Map(operations.map(({ name }) => [name, 0]))
  for (let pair = 0; pair < pairs; pair++) {
    for (const { name, ids, on } of operations) {
      const id = ids[Math.floor(Math.random() * ids.length)]!
      const time = (which: string) => timeOf404(stranger, agent, on(which))
      const foreignFirst = Math.random() < 0.5
      const one = await time(foreignFirst ? id : nobodys(id))
      const other = await time(foreignFirst ? nobodys(id) : id)
      if (foreignFirst ? one > other : other > one) longer.set(name, longer.get(name)! + 1)
    }
  }
  return Object.fromEntries([...longer].map(([name, count]) => [name, count / pairs]))
}

/** An id that stands beside the given one in every index, and belongs to nobody. */
function nobodys(id: string): string {
  const digits = Math.floor(Math.random() * 2 ** 40)
    .toString(16)
    .padStart(10, '0')
  return id.slice(0, -10) + digits
}

function timeOf404(service: Service, agent: Agent, { method, path, body }: LoadRequest): Promise<number> {
  const headers = {
    authorization: `Bearer ${service.token}`,
    ...(body && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
  }
  return new Promise((resolve, reject) => {
    const began = performance.now()
    const sent = request(`${service.url}${path}`, { method, agent, headers }, (answer) => {
      if (answer.statusCode !== 404) reject(new Error(`${method} ${path} answered ${answer.statusCode}`))
      answer.resume().once('end', () => resolve(performance.now() - began))
    })
    sent.once('error', reject).end(body)
  })
}
