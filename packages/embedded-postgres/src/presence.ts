import { connect, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { codeOf, type DataDirectory } from './data_directory.js'
import { EmbeddedPostgresError } from './failures.js'

/** What a client of a data directory listens on: a socket in its `home`, reached through `reach`, or a pipe. */
export function presenceOf(directory: DataDirectory, reach: string, home: string, id: string): string {
  if (directory.transport === 'tcp') return pipeOf(directory.name, id, process.platform)
  return join(reach, home, id)
}

/**
 * A pipe belongs to the machine, not to a directory: the id alone tells whose it is. Linux, where tests go this way
 * too, has names in place of sockets' files that behave alike.
 */
export function pipeOf(name: string, id: string, platform: NodeJS.Platform): string {
  return platform === 'win32' ? `\\\\.\\pipe\\${name}-${id}` : `\0${name}-${id}`
}

/** Listens on a Unix socket or a pipe as long as this process lives, without keeping it alive. */
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
 * Whether a living process listens on a Unix socket or a pipe. The kernel answers, not the process, which may be busy or
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
