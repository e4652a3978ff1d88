import type { TimelineItem } from '@annals/client'
import { writeJson } from '@annals/messages/json'
import { Command } from 'commander'
import type { Column } from '../terminal/table.js'
import { agoOf } from '../terminal/times.js'
import { parseSession } from './arguments.js'
import { type ConnectionOptions, connect, withService } from './connection.js'
import { findSession } from './pick_session.js'
import { type ListOptions, pageQuery, printList, withLimit } from './print_list.js'

interface LatestOptions extends ListOptions, ConnectionOptions {
  key?: string
  prefix?: string
}

/** annals latest */
export function latestCommand(): Command {
  const command = new Command('latest')
    .description('List the newest entry of each key in a session, ordered by key.')
    .argument('<session>', "the session's id, or its beginning", parseSession)
    .option('--key <key>', 'only of this key')
    .option('--prefix <text>', 'only of keys that begin with this')
  return withService(withLimit(command, { ordered: false }))
    .addHelpText(
      'after',
      '\nExample:\n  annals latest 01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d --prefix checkpoint/',
    )
    .action(async (session: string, options: LatestOptions) => {
      const { annals, output } = await connect(options)
      const { limit } = pageQuery(options)
      const list = annals.sessions.latest(await findSession(annals, session), {
        limit,
        key: options.key,
        key_prefix: options.prefix,
      })
      await printList(output, list, () => COLUMNS, options, {
        unit: 'entries',
        nothing: () => 'No entry has such a key.',
      })
    })
}

const COLUMNS: Column<TimelineItem>[] = [
  { title: 'key', text: ({ key }) => key ?? '', shrinks: true, style: 'cyan' },
  { title: 'seq', text: ({ seq }) => String(seq) },
  { title: 'stored', text: ({ created_at }) => agoOf(created_at) },
  {
    title: 'entry',
    text: (item) => (item.kind === 'event' ? `${item.type} ${writeJson(item.data)}` : writeJson(item.blob)),
    shrinks: true,
    style: 'dim',
  },
]
