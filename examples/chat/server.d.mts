import type { Server } from 'node:http'

export function startChat(options: {
  url: string
  /** The project's API key. */
  token: string
  session_id: string
  port: number
  /** Makes the page's tokens, for pages of this origin. By default the service is asked for one. */
  tokenFor?: (origin: string) => Promise<{ token: string }>
}): Promise<{ url: string; server: Server }>
