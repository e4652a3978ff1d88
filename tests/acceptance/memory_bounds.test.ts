import { beforeAll, describe, expect, it } from 'vitest'
import type { AnnalsServer } from '../harness/annals_process.ts'
import { expectOk } from '../harness/expectations.ts'
import { peakMegabytes } from '../harness/memory_watch.ts'
import { type Project, useService } from '../harness/service.ts'
import { newSessionLog, type SessionLog } from '../harness/session_log.ts'
import { getRequest, slowReader } from '../harness/slow_reader.ts'

const MEGABYTE = 1_048_576
const MESSAGES = 20
/** What the process may take in all, with this heap and this budget: about 110 MB of it when idle. */
const RSS_MEGABYTES_MAX = 400
const SMALL = {
  NODE_OPTIONS: '--max-old-space-size=256',
  ANNALS_MEMORY_BYTES_MAX: String(96 * MEGABYTE),
  ANNALS_STALL_MS_MAX: '4000',
}

const service = useService()
/** A node with little memory, for the attacks of one project. */
let small: AnnalsServer
let project: Project
let log: SessionLog

beforeAll(async () => {
  small = await service.startNode(SMALL)
  project = await service.newProject()
  log = await newSessionLog(await service.newClient({ token: project.token }))
  const content = 'It left an hour ago, they say. '.repeat(32_000)
  for (let at = 0; at < MESSAGES; at++) expectOk(await log.add({ role: 'user', content }), 201)
}, 60_000)

/** Requests of another project, one after the other, for as long as `attack` lasts: every one must succeed. */
async function beside(attack: Promise<void>): Promise<number> {
  const quiet = await service.newClient({ node: small })
  const own = await newSessionLog(quiet)
  let isOver = false
  let served = 0
  const serve = async () => {
    while (!isOver) {
      expectOk(await own.addEvent('small', { served }))
      expectOk(await quiet.listSessions({ limit: 5 }))
      expectOk(await own.timeline({ limit: 5, time_desc: true }))
      expect((await quiet.request('GET', '/health')).status).toBe(200)
      served += 1
    }
  }
  const serving = serve()
  try {
    await attack
  } finally {
    isOver = true
    await serving
  }
  return served
}

describe('a process with little memory lives, keeps to its bound, and serves another project during', () => {
  it('1,000 readers of 20 MB that take nothing', async () => {
    const request = getRequest(
      `/api/v1/session/${log.id}/messages?limit=200`,
      project.token,
      'Connection: close',
    )
    let heads: string[] = []
    const attack = async () => {
      const readers = await Promise.all(Array.from({ length: 1_000 }, () => slowReader(small.url, request)))
      await new Promise((resolve) => setTimeout(resolve, 5_000))
      await Promise.all(readers.map((reader) => reader.take(1)))
      heads = readers.map((reader) => reader.head().split('\r\n', 1)[0]!)
      for (const { socket } of readers) socket.destroy()
    }
    let served = 0
    const peak = await peakMegabytes(small, async () => {
      served = await beside(attack())
    })
    expect(peak).toBeLessThan(RSS_MEGABYTES_MAX)
    expect(served).toBeGreaterThan(2)
    expect(heads).toContain('HTTP/1.1 200 OK')
  }, 60_000)
})
