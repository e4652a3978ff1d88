import { randomUUID } from 'node:crypto'
import type { LoadOptions } from '../load.ts'
import { loadLongSession } from '../long_session.ts'
import type { Service } from '../service.ts'
import { appendsTo, callApi, createSessions, newProject, toolCall } from '../sessions.ts'

/** A load that both builds are put under. `services`: the service as it is to each of several projects. */
export type Load = Pick<LoadOptions, 'connections' | 'requests' | 'status'> & { services?: Service[] }

const LONG_SESSION_ENTRIES = 10_000
const LISTED_SESSIONS = 5_000
const BATCHES = [50, 100]
const PROJECTS = 8
const USERS = 50

const get = (path: string) => ({ method: 'GET', path })

/** Fills the service with the same data each time, and gives the loads by name. */
export async function prepareLoads(service: Service): Promise<Record<string, Load>> {
  const sessions = await createSessions(service, 1_000)
  const [long = ''] = await createSessions(service, 1)
  await loadLongSession(service, long, LONG_SESSION_ENTRIES)
  await createUsersSessions(service)
  const batches = BATCHES.map((length) => [`batches of ${length}`, batchesTo(sessions.slice(0, 200), length)])
  const message = { blob: { role: 'user', content: 'Where is my flight? It left an hour ago, they say.' } }
  const messages = sessions.map((session) => ({
    method: 'POST',
    path: `/api/v1/session/${session}/messages`,
    body: JSON.stringify(message),
  }))
  const log = `/api/v1/session/${long}`
  const readAny = (paths: string[]) => ({ connections: 8, status: 200, requests: paths.map(get) })
  const read = (path: string) => readAny([path])
  const lists = Array.from({ length: USERS }, (_, at) => `/api/v1/session?user=user-${at}&time_desc=true`)
  return {
    'append, 1,000 sessions, 64 connections': { connections: 64, status: 200, requests: appendsTo(sessions) },
    [`append, ${PROJECTS} projects`]: await appendsToProjects(service),
    'append, one session': { connections: 64, status: 200, requests: appendsTo(sessions.slice(0, 1)) },
    'append, 4 connections': { connections: 4, status: 200, requests: appendsTo(sessions) },
    messages: { connections: 64, status: 201, requests: messages },
    ...Object.fromEntries(batches),
    'list, first page': read('/api/v1/session?time_desc=true'),
    'list of a user': read('/api/v1/session?user=user-7&time_desc=true'),
    'lists of different users': readAny(lists),
    'list by a value': read(`/api/v1/session?filter_by_configs=${encodeURIComponent('{"agent":"a-3"}')}`),
    'last 50 entries': read(`${log}/timeline?limit=50&time_desc=true`),
    '200 messages in their own format': read(`${log}/messages?limit=200`),
    '200 messages in another format': read(`${log}/messages?limit=200&format=gemini`),
    'a session': read(log),
  }
}

function batchesTo(sessions: string[], length: number): Load {
  const requests = sessions.map((session, index) => {
    const entries = Array.from({ length }, (_, at) => ({ kind: 'event', ...toolCall(index + at) }))
    return { method: 'POST', path: `/api/v1/session/${session}/entries`, body: JSON.stringify({ entries }) }
  })
  return { connections: 16, status: 201, requests }
}

/** Each project has a session of each id, so that the same requests fit all. */
async function appendsToProjects(service: Service): Promise<Load> {
  const services = await Promise.all(Array.from({ length: PROJECTS }, () => newProject(service)))
  const ids = Array.from({ length: 8 }, () => randomUUID())
  for (const use_uuid of ids) {
    const body = JSON.stringify({ use_uuid })
    await Promise.all(services.map((one) => callApi(one, { method: 'POST', path: '/api/v1/session', body })))
  }
  return { connections: 64, status: 200, requests: appendsTo(ids), services }
}

async function createUsersSessions(service: Service): Promise<void> {
  for (let from = 0; from < LISTED_SESSIONS; from += USERS) {
    const made = Array.from({ length: USERS }, (_, at) => {
      const body = JSON.stringify({ user: `user-${at}`, configs: { agent: `a-${at % 10}`, env: 'airline' } })
      return callApi(service, { method: 'POST', path: '/api/v1/session', body })
    })
    await Promise.all(made)
  }
}
