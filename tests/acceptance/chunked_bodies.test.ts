import { beforeAll, describe, expect, it } from 'vitest'
import { rawConnection, readRawAnswer } from '../harness/raw_connection.ts'
import { type Project, useSharedService } from '../harness/service.ts'

const service = useSharedService()
let project: Project

beforeAll(async () => {
  project = await service.newProject()
})

/** Sends a session's configs in chunks of a size; gives what came until the connection ended. */
async function create(bytes: number, chunk_bytes: number): Promise<string> {
  const body = JSON.stringify({ configs: { text: 'x'.repeat(bytes) } })
  const chunks: string[] = []
  for (let from = 0; from < body.length; from += chunk_bytes) {
    const chunk = body.slice(from, from + chunk_bytes)
    chunks.push(`${chunk.length.toString(16)}\r\n${chunk}\r\n`)
  }
  const { socket, closed } = await rawConnection(service.node.url)
  socket.write(
    `POST /api/v1/session HTTP/1.1\r\nHost: annals\r\nConnection: close\r\nAuthorization: Bearer ${project.token}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${chunks.join('')}0\r\n\r\n`,
  )
  return closed
}

describe('a body in chunks', () => {
  it.each([
    ['of 20 bytes, thousands of them', 60_000, 20],
    ['of a byte, more than a thousand of them', 1_500, 1],
  ])('is taken: %s', async (_case, bytes, chunk_bytes) => {
    expect(readRawAnswer(await create(bytes, chunk_bytes)).status).toBe(201)
  })

  it('ends its connection where it is thousands of single bytes', async () => {
    expect(await create(60_000, 1)).toBe('')
  })
})
