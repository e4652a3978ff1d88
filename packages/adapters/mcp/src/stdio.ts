import type { Annals } from '@annals/client'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { annalsMcp, mayWrite } from './server.js'

/**
 * Serves one client over stdin and stdout, until stdin ends. Nothing else may be written to stdout.
 * @throws AnnalsError if the service does not answer or refuses the key
 */
export async function mcpOverStdio(annals: Annals, version: string): Promise<void> {
  const may_write = await mayWrite(annals)
  serveStdio(() => annalsMcp({ annals, may_write, version }))
}
