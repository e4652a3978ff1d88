import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from 'pino'

/** Number of checks before a connection is closed: a process that stood still for a while closes none. */
const CHECKS = 20
/** Bytes that a client must read in that time, or all that waits for it: one byte now and then is not reading. */
const TAKEN_BYTES_MIN = 16_384

interface Progress {
  taken: number
  checks: number
}

/**
 * Closes connections whose clients do not read what they asked for, whatever kind of answer it is: what waits for
 * them is held in memory. Answers are written in small pieces (http/answer/answer_pieces.ts), so that progress shows.
 */
export function cutStalledReaders(server: Server, stall_ms_max: number, logger: Logger): void {
  const open = new Set<Socket>()
  const behind = new Map<Socket, Progress>()
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => {
      open.delete(socket)
      behind.delete(socket)
    })
  })
  const check = () => {
    let cut = 0
    for (const socket of open) {
      if (isStalled(socket, behind)) {
        socket.destroy()
        cut += 1
      }
    }
    if (cut > 0) logger.warn({ connections: cut }, 'closed connections whose clients did not read')
  }
  let timer: NodeJS.Timeout | undefined
  server.once('listening', () => {
    timer = setInterval(check, stall_ms_max / CHECKS).unref()
  })
  server.once('close', () => clearInterval(timer))
}

function isStalled(socket: Socket, behind: Map<Socket, Progress>): boolean {
  if (socket.writableLength === 0) {
    behind.delete(socket)
    return false
  }
  const taken = socket.bytesWritten - socket.writableLength
  const progress = behind.get(socket)
  if (!progress || taken - progress.taken >= TAKEN_BYTES_MIN) {
    behind.set(socket, { taken, checks: 0 })
    return false
  }
  progress.checks += 1
  return progress.checks >= CHECKS
}
