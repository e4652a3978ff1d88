import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { rawConnection } from '../harness/raw_connection.ts'
import { useService } from '../harness/service.ts'

const CONNECTIONS = 40
const AHEAD = 12

const service = useService()
const get = (path: string, ...headers: string[]) =>
  `${[`GET ${path} HTTP/1.1`, 'Host: annals', ...headers].join('\r\n')}\r\n\r\n`

function openFilesNamed(pid: number, name: string): number {
  return readdirSync(`/proc/${pid}/fd`).filter((descriptor) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${descriptor}`).endsWith(name)
    } catch {
      return false
    }
  }).length
}

describe('a caller who sends requests ahead and leaves', () => {
  it.runIf(process.platform === 'linux')(
    'leaves no file open behind the answers that it never took',
    async () => {
      const { url, pid } = service.node
      for (let round = 0; round < CONNECTIONS; round += 1) {
        const { socket, closed } = await rawConnection(url)
        socket.write(get('/console/demo.json').repeat(AHEAD))
        await once(socket, 'data')
        socket.pause()
        socket.resetAndDestroy()
        await closed
      }
      await vi.waitFor(() => expect(openFilesNamed(pid, 'sessions.json')).toBe(0), { timeout: 15_000 })
    },
  )

  it('does not end the service when its connection is cut in the middle of what it sent', async () => {
    const project = await service.newProject()
    const request = get('/api/v1/session?limit=200', `Authorization: Bearer ${project.token}`)
    for (let round = 0; round < 4; round += 1) {
      const { socket, closed } = await rawConnection(service.node.url)
      socket.pause()
      socket.write(request.repeat(5_000))
      await sleep(0)
      await vi.waitFor(() => expect(socket.bytesWritten).toBeGreaterThan(0))
      socket.resume()
      await Promise.race([closed, sleep(1_000)])
      socket.resetAndDestroy()
      await closed
    }
    expect((await fetch(`${service.node.url}/health`)).status).toBe(200)
  })
})
