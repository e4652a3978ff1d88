import { StartError } from '../errors.js'
import type { AppServer } from './service_context.js'

/**
 * Connections that may wait to be accepted; the system may bound them lower (net.core.somaxconn). A turn of the event
 * loop accepts one. When thousands come in a moment, those beyond the bound try again after seconds, and are cut in the
 * end: Node's own, 511, is soon full.
 */
const BACKLOG = 4_096
const SWEEP_MS = 50

/** Listens and gives the URL. @throws StartError when the address cannot be had */
export async function listen(app: AppServer, config: { host: string; port: number }): Promise<string> {
  try {
    return await app.listen({ host: config.host, port: config.port, backlog: BACKLOG })
  } catch (error) {
    const { code } = error as { code?: string }
    if (code === 'EADDRINUSE') {
      throw new StartError(
        `Port ${config.port} on ${config.host} is taken: another Annals or another program listens there. Stop it, or set PORT.`,
      )
    }
    if (code === 'EACCES')
      throw new StartError(
        `Port ${config.port} needs more rights than this user has. Set PORT to one above 1023.`,
      )
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
      throw new StartError(
        `HOST ${config.host} is no address of this machine. Set HOST to one that is, such as 127.0.0.1.`,
      )
    }
    throw error
  }
}

/** Answers what was accepted and closes; when that takes too long, cuts what is still open. */
export async function closeWithin(ms: number, app: AppServer): Promise<void> {
  const cut = setTimeout(() => app.server.closeAllConnections(), ms)
  // Closing ends the connections that are idle by then. One that is kept after its last answer would be waited for.
  const sweep = setInterval(() => app.server.closeIdleConnections(), SWEEP_MS)
  try {
    await app.close()
  } finally {
    clearTimeout(cut)
    clearInterval(sweep)
  }
}
