import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Ends answers that were queued behind others on a connection when that connection goes. The platform tells only the
 * answer whose turn it is; what the others send, such as an open file, would be kept for ever.
 */
export function endQueuedAnswers(server: Server): void {
  const queuedOn = new WeakMap<Socket, Set<ServerResponse>>()
  server.on('connection', (socket: Socket) => {
    socket.once('close', () => {
      for (const response of queuedOn.get(socket) ?? []) tellClosed(response)
    })
  })
  server.prependListener('request', ({ socket }, response) => {
    if (response.socket !== null) return
    const queued = queuedOn.get(socket) ?? new Set()
    queuedOn.set(socket, queued.add(response))
    response.once('close', () => queued.delete(response))
  })
}

/** What the platform does for the answer whose turn it is; an answer that begins later finds itself closed. */
function tellClosed(response: ServerResponse): void {
  Object.assign(response, { destroyed: true, _closed: true })
  response.emit('close')
}
