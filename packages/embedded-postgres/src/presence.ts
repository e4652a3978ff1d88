import { connect, createServer, type Server } from 'node:net'
import { codeOf } from './data_directory.js'
import { EmbeddedPostgresError } from './failures.js'

/** Listens on a Unix socket as long as this process lives, without keeping it alive. */
export function listenOn(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    // Being accepted by the kernel is all that a caller needs to know.
    const server = createServer((socket) => socket.destroy())
    server.on('error', (error) => {
      const unsupported = ['ENOTSUP', 'EOPNOTSUPP', 'EINVAL', 'ENOSYS'].includes(codeOf(error) ?? '')
      if (!unsupported) return reject(error)
      const sentence = 'has no Unix sockets: choose a data directory on a local disk.'
      reject(new EmbeddedPostgresError(`The file system of ${path} ${sentence}`, { cause: error }))
    })
    // Exclusive: a worker of node:cluster must listen itself, not through its primary.
    server.listen({ path, exclusive: true }, () => resolve(server))
    server.unref()
  })
}

/**
 * Whether a living process listens on a Unix socket. The kernel answers, not the process, which may be busy or
 * stopped. Any failure except "nobody there" counts as yes, so that nothing in use is taken for abandoned.
 */
export function someoneListensOn(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path })
    socket.on('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', (error) => {
      const nobody = ['ECONNREFUSED', 'ENOENT', 'ENOTSOCK', 'ENOTDIR'].includes(codeOf(error) ?? '')
      resolve(!nobody)
    })
  })
}
