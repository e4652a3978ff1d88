import { VERSION } from '@annals/kits/version.js'
import { Command } from 'commander'
import { type ConnectionOptions, connect, withConnection } from './connection.js'

const RETRIES = 5

/** annals mcp */
export function mcpCommand(): Command {
  const command = new Command('mcp').description(
    'Serve the sessions of a project to one client of the Model Context Protocol, over stdin and stdout.',
  )
  return withConnection(command)
    .addHelpText(
      'after',
      `
Clients start it themselves: give them the command \`annals mcp\`, and ANNALS_URL and ANNALS_API_KEY in its environment.
A key that may only read gets no tool that writes. The service itself serves the same at /mcp, over HTTP.

Example:
  claude mcp add annals -- annals mcp --url http://127.0.0.1:8029`,
    )
    .action(async (options: ConnectionOptions) => {
      const { annals } = await connect(options, RETRIES)
      const { mcpOverStdio } = await import('@annals/mcp/stdio')
      await mcpOverStdio(annals, VERSION)
    })
}
