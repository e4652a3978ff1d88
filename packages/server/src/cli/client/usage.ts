import { Command } from 'commander'
import type { Column } from '../terminal/table.js'
import { type ConnectionOptions, connect, withService } from './connection.js'

interface Row {
  name: string
  used: number
  max: number | null
}

const COLUMNS: Column<Row>[] = [
  { title: 'what', text: ({ name }) => name },
  { title: 'used', text: ({ used }) => used.toLocaleString('en') },
  { title: 'quota', text: ({ max }) => (max === null ? 'none' : max.toLocaleString('en')) },
]

/** annals usage */
export function usageCommand(): Command {
  const command = new Command('usage').description("Show the project's usage and quotas.")
  return withService(command)
    .addHelpText(
      'after',
      `
Tails are those open at the node that answers. An operator sets quotas with \`annals project set\`.

Example:
  annals usage --json | jq .bytes`,
    )
    .action(async (options: ConnectionOptions) => {
      const { annals, output } = await connect(options)
      const usage = await annals.usage()
      if (output.json) return output.value(usage)
      const rows = (['sessions', 'entries', 'bytes', 'tails'] as const).map((name) => ({
        name,
        ...usage[name],
      }))
      const { tableLines } = await import('../terminal/table.js')
      output.lines(tableLines(COLUMNS, rows, output.width, output.paint))
    })
}
