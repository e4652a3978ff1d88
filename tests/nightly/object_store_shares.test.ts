import { request } from 'node:http'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startObjectStore, type TestObjectStore } from '../../lab/object_store.ts'
import { blobUrl, bytesOf, getBlob, newBytes, putBlob, sha256Of } from '../harness/blobs.ts'
import { type Project, useService } from '../harness/service.ts'
import { getRequest, slowReader } from '../harness/slow_reader.ts'

/** More than there are connections to the object store. */
const HELD = 120
const LARGE_BYTES = 20_000_000

const env: Record<string, string> = {}
let store: TestObjectStore

beforeAll(async () => {
  store = await startObjectStore()
  Object.assign(env, store.env)
})
const service = useService(env)
afterAll(() => store.end())

/** Sends the beginning of a blob, and nothing more. */
function uploadForEver({ token }: Project) {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Length': 700_000 }
  const sent = request(blobUrl(service.node.url, sha256Of(newBytes(8))), { method: 'PUT', headers })
  sent.on('error', () => {})
  sent.write(newBytes(400_000))
  return sent
}

/** Another project sends a blob and reads it. */
async function useAttachments() {
  const { token } = await service.newProject()
  const bytes = newBytes(50_000)
  expect((await putBlob(service.node.url, token, bytes)).status).toBe(201)
  const read = await getBlob(service.node.url, token, sha256Of(bytes))
  expect((await bytesOf(read)).equals(bytes)).toBe(true)
}

it('a project with uploads that never end leaves the others connections to the object store', async () => {
  const project = await service.newProject()
  const uploads = Array.from({ length: HELD }, () => uploadForEver(project))
  try {
    await useAttachments()
  } finally {
    for (const upload of uploads) upload.destroy()
  }
})

it('so does one whose readers take next to nothing', async () => {
  const project = await service.newProject()
  const bytes = newBytes(LARGE_BYTES)
  expect((await putBlob(service.node.url, project.token, bytes)).status).toBe(201)
  const asked = getRequest(`/api/v1/blobs/${sha256Of(bytes)}`, project.token)
  const readers = await Promise.all(Array.from({ length: HELD }, () => slowReader(service.node.url, asked)))
  try {
    await readers[0]!.take(100_000)
    await useAttachments()
  } finally {
    for (const { socket } of readers) socket.destroy()
  }
})
