import { Command } from 'commander'
import { type ConnectionOptions, connect, withService } from './connection.js'

/** annals whoami */
export function whoamiCommand(): Command {
  const command = new Command('whoami').description(
    'Show which service and project commands use, and what the API key may do.',
  )
  return withService(command)
    .addHelpText('after', '\nExample:\n  annals whoami --profile work')
    .action(async (options: ConnectionOptions) => {
      const { annals, url, origin, output } = await connect(options)
      const key = await annals.key()
      if (output.json) return output.value({ url, ...key })
      const { id, scopes, project_id } = key
      output.lines([
        `service  ${output.paint('cyan', url)}`,
        `project  ${project_id}`,
        `key      ${id}, with the scopes ${scopes.join(', ')}`,
        `         ${origin}`,
      ])
    })
}
