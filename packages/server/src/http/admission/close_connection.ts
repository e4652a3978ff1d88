import type { Socket } from 'node:net'

/** The platform's functions that its parser calls for what it finds, by their names. */
const CALLBACKS = new Set(['parserOnHeadersComplete', 'parserOnBody', 'parserOnMessageComplete'])

/**
 * Closes a connection on which too much has arrived. The platform parses the rest of the 64 KB that it has read even
 * so, and calls back for each request and chunk in them, which can take 10 ms. So its parser calls nothing any more
 * until the connection is closed; then other connections may get it.
 */
export function closeConnection(socket: Socket & { parser?: Record<string, unknown> | null }): void {
  if (socket.destroyed) return
  socket.destroy()
  const { parser } = socket
  if (!parser) return
  const callbacks = Object.entries(parser).filter(
    ([, value]) => typeof value === 'function' && CALLBACKS.has(value.name),
  )
  for (const [key] of callbacks) parser[key] = undefined
  socket.once('close', () => Object.assign(parser, Object.fromEntries(callbacks)))
}
