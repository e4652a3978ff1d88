import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { startObjectStore, type TestObjectStore } from '../../lab/object_store.ts'
import { errorOf, getBlob, newBytes, putBlob, sha256Of } from '../harness/blobs.ts'
import { expectOk } from '../harness/expectations.ts'
import { useService } from '../harness/service.ts'
import { newSessionLog } from '../harness/session_log.ts'
import { reasonForNoOwnDatabase } from '../harness/test_database.ts'

/** Far less than a connection may be idle, and than a client waits. */
const ANSWER_MS_MAX = 15_000

const env: Record<string, string> = { ANNALS_RETENTION_MS: '500' }
const sockets = new Set<Socket>()
let store: TestObjectStore
let way: Server
let is_silent = false

beforeAll(async () => {
  store = await startObjectStore()
  const { hostname, port } = new URL(store.env.ANNALS_S3_ENDPOINT!)
  way = createServer((client) => {
    const server = connect(Number(port), hostname)
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(one)
      one.on('error', () => {})
      one.on('close', () => other.destroy())
      one.on('data', (bytes) => is_silent || other.write(bytes))
    }
  })
  way.listen(0, '127.0.0.1')
  await once(way, 'listening')
  const endpoint = `http://127.0.0.1:${(way.address() as AddressInfo).port}`
  Object.assign(env, store.env, { ANNALS_S3_ENDPOINT: endpoint })
})
const service = useService(env)
afterAll(async () => {
  for (const socket of sockets) socket.destroy()
  way.close()
  await store.end()
})

// In a database that all files share, nodes with other stores would take the notes of its objects for theirs.
it.skipIf(reasonForNoOwnDatabase())(
  'an object store that takes requests and says nothing is away: reads are 503, deletions end, and are made up for',
  async () => {
    const project = await service.newProject()
    const api = await service.newClient({ token: project.token })
    const bytes = newBytes(300_000)
    const { url } = service.node
    expect((await putBlob(url, project.token, bytes)).status).toBe(201)
    const log = await newSessionLog(api)
    const file = { annals_blob: sha256Of(bytes), media_type: 'image/png' }
    expectOk(await log.addEvent('note', { file }))
    is_silent = true
    const began = performance.now()
    const read = await errorOf(await getBlob(url, project.token, sha256Of(bytes)))
    expect(read).toMatchObject({ status: 503, error: 'unavailable' })
    expect(performance.now() - began).toBeLessThan(ANSWER_MS_MAX)
    expectOk(await api.request('DELETE', `/api/v1/session/${log.id}`))
    expect(performance.now() - began).toBeLessThan(2 * ANSWER_MS_MAX)
    is_silent = false
    await vi.waitFor(async () => expect(await store.keysOf(project.id)).toEqual([]), { timeout: 20_000 })
  },
)
