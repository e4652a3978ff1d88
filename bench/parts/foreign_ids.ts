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
    const groups: Record<string, Operation[]> = {
      'the other project’s id': [...ofSessions(stranger, sessions), ...ofSpaces(stranger, spaces)],
      'an id that a token does not reach': await ofTokens(ctx, service),
    }
    const pairs = ctx.quick ? 4 : 1_000
    const figures: Figure[] = []
    for (const [whose, operations] of Object.entries(groups)) {
      const name = `share of pairs in which ${whose} took longer`
      await round(ctx, operations, Math.ceil(pairs / 2))
      const values: number[] = []
      for (let at = 1; at <= ctx.rounds; at++) {
        ctx.say(`round ${at} of ${ctx.rounds}: ${whose}`)
        const shares = await round(ctx, operations, pairs)
        ctx.detail(`round ${at}: ${name}`, shares)
        values.push(Math.abs(shares.reduce((sum, { share }) => sum + share, 0) / shares.length - 0.5))
      }
      const figure = { unit: 'ratio', better: 'lower', at_least: 0.02, charted: false } as const
      figures.push({ ...figure, name: `${name}, distance from one half`, values })
    }
    return figures
  },
}

interface Operation {
  name: string
  caller: Service
  ids: string[]
  on(id: string): LoadRequest
}

function ofSessions(caller: Service, ids: string[]): Operation[] {
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
    caller,
    ids,
    on: (id) => ({ method, path: `/api/v1/session/${id}${rest}`, ...(body && { body }) }),
  }))
}

function ofSpaces(caller: Service, ids: string[]): Operation[] {
  return ['GET', 'DELETE'].map((method) => ({
    name: `${method} learning space`,
    caller,
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

/** Of tokens of a session, of a user and of a parent, which reach none of the sessions that are asked for. */
async function ofTokens(ctx: BenchContext, service: Service): Promise<Operation[]> {
  const post = <Data>(path: string, body: object) =>
    callApi<Data>(service, { method: 'POST', path: `/api/v1/${path}`, body: JSON.stringify(body) })
  const create = async (body: object) => (await post<{ id: string }>('session', body)).id
  const [own, other] = [await create({ user: 'ada' }), await create({ user: 'bob' })]
  await create({ parent: own })
  const ids: string[] = []
  for (let count = 0; count < ctx.some(IDS); count++) ids.push(await create({ user: 'bob', parent: other }))
  const operations: Operation[] = []
  for (const reach of [{ session_id: own }, { user: 'ada' }, { parent: own }]) {
    const body = { for: reach, scopes: ['read', 'append'], ttl_s: 86_400 }
    const { token } = await post<{ token: string }>('tokens', body)
    const of = Object.keys(reach)[0]
    for (const operation of ofSessions({ ...service, token }, ids))
      operations.push({ ...operation, name: `${operation.name}, of ${of}` })
  }
  return operations
}

/** Of each operation, the share of pairs in which an id that is there took longer than one that nobody has. */
async function round(ctx: BenchContext, operations: Operation[], pairs: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  ctx.atEnd(() => agent.destroy())
  const longer = operations.map(({ name }) => ({ name, share: 0 }))
  for (let pair = 0; pair < pairs; pair++) {
    for (const [at, { caller, ids, on }] of operations.entries()) {
      const id = ids[Math.floor(Math.random() * ids.length)]!
      const time = (which: string) => timeOf404(caller, agent, on(which))
      const foreignFirst = Math.random() < 0.5
      const one = await time(foreignFirst ? id : nobodys(id))
      const other = await time(foreignFirst ? nobodys(id) : id)
      if (foreignFirst ? one > other : other > one) longer[at]!.share += 1 / pairs
    }
  }
  return longer
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
