import { StartError } from '../errors.js'
import type { AppServer } from './app_parts.js'

/** Listens and gives the URL. @throws StartError when the address cannot be had */
export async function listen(app: AppServer, config: { host: string; port: number }): Promise<string> {
  try {
    return await app.listen({ host: config.host, port: config.port })
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

/** Waits for `close`; when that takes too long, `cut`s what is still open. */
export async function closeWithin(ms: number, close: () => Promise<unknown>, cut: () => void): Promise<void> {
  const timer = setTimeout(cut, ms)
  try {
    await close()
  } finally {
    clearTimeout(timer)
  }
}
