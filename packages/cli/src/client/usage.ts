import type { Usage } from '@annals/client'
import { Command } from 'commander'
import type { Column } from '../terminal/table.js'
import { type ConnectionOptions, connect, withService } from './connection.js'

interface Row {
  name: string
  used: number
  max?: number | null
}

const COLUMNS: Column<Row>[] = [
  { title: 'what', text: ({ name }) => name },
  { title: 'used', text: ({ used }) => used.toLocaleString('en') },
  { title: 'quota', text: ({ max }) => (max == null ? 'none' : max.toLocaleString('en')) },
]

const NAMES = [
  ...(['sessions', 'entries', 'bytes', 'blobs', 'blob_bytes', 'statements'] as const),
  ...(['model_tokens', 'tails'] as const),
]

const DAY_COLUMNS: Column<Usage['days'][number]>[] = [
  { title: 'day', text: ({ day }) => day },
  ...(['sessions', 'entries', 'bytes', 'blobs', 'blob_bytes', 'statements', 'model_tokens'] as const).map(
    (title) => ({
      title,
      text: (day: Usage['days'][number]) => day[title].toLocaleString('en'),
      from_width: ['blobs', 'statements'].includes(title) ? 110 : 0,
    }),
  ),
]

/** annals usage */
export function usageCommand(): Command {
  const command = new Command('usage').description(
    "Show the project's usage and quotas, and what it stored by day.",
  )
  return withService(command)
    .option('--days <days>', 'how many days, including today', '7')
    .addHelpText(
      'after',
      `
Tails are those open at the node that answers. Days are in UTC; days without use are left out. An import counts on
the day on which it runs. Blobs and statements by day need a terminal of 110 columns, or --json. An operator sets quotas
with \`annals project set\`.

Example:
  annals usage --json | jq .bytes`,
    )
    .action(async (options: ConnectionOptions & { days: string }) => {
      const { annals, output } = await connect(options)
      const usage = await annals.usage({ days: Number(options.days) })
      if (output.json) return output.value(usage)
      const rows = NAMES.map((name) => ({
        name,
        ...usage[name],
      }))
      const { tableLines } = await import('../terminal/table.js')
      const table = tableLines(COLUMNS, rows, output.width, output.paint)
      const days = tableLines(DAY_COLUMNS, usage.days, output.width, output.paint)
      output.lines(usage.days.length > 0 ? [...table, '', ...days] : table)
    })
}
