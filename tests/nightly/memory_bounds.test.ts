import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import type { AnnalsServer } from '../harness/annals_process.ts'
import { expectOk } from '../harness/expectations.ts'
import { peakMegabytes } from '../harness/memory_watch.ts'
import { type Project, useService } from '../harness/service.ts'
import { newSessionLog, type SessionLog } from '../harness/session_log.ts'
import { getRequest, slowReader } from '../harness/slow_reader.ts'
import { IS_THOROUGH } from '../harness/thorough.ts'

const MEGABYTE = 1_048_576
const MESSAGES = 20
/** What the process may take in all with this heap, of which half is the budget: about 110 MB of it when idle. */
const RSS_MEGABYTES_MAX = 550
const SMALL = {
  NODE_OPTIONS: '--max-old-space-size=256',
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
})

/** Requests of another project, one after the other, for as long as `attack` lasts: every one must succeed. */
async function beside(attack: () => Promise<void>): Promise<number> {
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
    await attack()
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
    await expectBounded(attack)
    expect(heads).toContain('HTTP/1.1 200 OK')
  })

  it.runIf(IS_THOROUGH)('1,000 bodies of a mebibyte less one byte that never end, with a key', async () => {
    await expectBodiesBounded([`/api/v1/session/${log.id}/events`], project.token, [503])
  })

  it('1,000 bodies of a mebibyte less one byte that never end, without a key', async () => {
    const paths = ['/console/sign_in', '/admin/v1/projects', '/api/v1/session', '/nowhere']
    await expectBodiesBounded(paths, undefined, [401, 404, 405, 413, 503])
  })

  it.runIf(IS_THOROUGH)('50 messages with attachments of 15 MB', async () => {
    const client = await service.newClient({ token: project.token, node: small })
    const other = await newSessionLog(client)
    const statuses: number[] = []
    await expectBounded(async () => {
      const url = `data:image/png;base64,${randomBytes(15 * MEGABYTE).toString('base64')}`
      const rawBody = JSON.stringify({
        blob: { role: 'user', content: [{ type: 'image_url', image_url: { url } }] },
      })
      const send = () => client.request('POST', `/api/v1/session/${other.id}/messages`, { rawBody })
      for (const { status } of await Promise.all(Array.from({ length: 50 }, send))) statuses.push(status)
    })
    expect(statuses).toContain(201)
    expect(new Set([...statuses, 503])).toEqual(new Set([201, 503]))
  })

  it('pages of 8 MB in five formats, read by 50 clients', async () => {
    // What the attacks before left in a process's allocator is not what this one takes.
    small = await service.startNode(SMALL)
    const formats = ['openai', 'anthropic', 'gemini', 'acontext', 'responses']
    const client = await service.newClient({ token: project.token, node: small })
    const statuses: number[] = []
    const attack = async () => {
      const readers = Array.from({ length: 50 }, async (_, at) => {
        const query = { limit: 8, format: formats[at % formats.length]! }
        const answer = await client.request('GET', `/api/v1/session/${log.id}/messages`, { query })
        statuses.push(answer.status)
        if (answer.status === 200) expect(answer.text.length).toBeGreaterThan(7 * 900_000)
      })
      await Promise.all(readers)
    }
    await expectBounded(attack)
    expect(statuses).toContain(200)
    expect(new Set([...statuses, 503])).toEqual(new Set([200, 503]))
  })
})

async function expectBounded(attack: () => Promise<void>): Promise<void> {
  let served = 0
  const peak = await peakMegabytes(small, async () => {
    served = await beside(attack)
  })
  expect(peak).toBeLessThan(RSS_MEGABYTES_MAX)
  expect(served).toBeGreaterThan(0)
}

/**
 * Sends all of a body but its last byte on 1,000 connections; half of them announce its length. Nearly all must be
 * answered, though none is complete.
 */
async function expectBodiesBounded(
  paths: string[],
  token: string | undefined,
  statuses: number[],
): Promise<void> {
  const body = `{"type":"large","data":{"text":"${'x'.repeat(MEGABYTE)}`.slice(0, MEGABYTE - 1)
  const authorization = token === undefined ? [] : [`Authorization: Bearer ${token}`]
  const lines = ['Host: 127.0.0.1', 'Content-Type: application/json', ...authorization]
  const kinds = paths.flatMap((path) => {
    const head = (framing: string) => [`POST ${path} HTTP/1.1`, ...lines, framing].join('\r\n')
    return [
      `${head(`Content-Length: ${MEGABYTE}`)}\r\n\r\n${body}`,
      `${head('Transfer-Encoding: chunked')}\r\n\r\n${MEGABYTE.toString(16)}\r\n${body}`,
    ]
  })
  await expectBounded(async () => {
    const senders = await Promise.all(
      Array.from({ length: 1_000 }, (_, at) => slowReader(small.url, kinds[at % kinds.length]!)),
    )
    for (const { socket } of senders) socket.resume()
    const answered = () =>
      senders.map((sender) => sender.head().slice(9, 12)).filter((status) => status !== '')
    try {
      await vi.waitFor(() => expect(answered().length).toBeGreaterThan(800), { timeout: 30_000 })
    } finally {
      for (const { socket } of senders) socket.destroy()
    }
    for (const status of new Set(answered())) expect(statuses).toContain(Number(status))
  })
}
