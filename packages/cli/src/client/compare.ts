import type { Annals, Session, TimelineItem } from '@annals/client'
import type { Row, Step } from '@annals/messages/session'
import { Command } from 'commander'
import type { Output } from '../terminal/output.js'
import { visibleLine } from '../terminal/visible.js'
import { parseSession } from './arguments.js'
import { type ConnectionOptions, connect, withService } from './connection.js'
import { findSession } from './pick_session.js'

/** Entries of a session that are compared, from the first. */
const ENTRIES_MAX = 2_000
const PAGE = 200
const BRIEF_CHARACTERS = 400

/** annals compare */
export function compareCommand(): Command {
  const command = new Command('compare')
    .description(
      'Compare two sessions: where they diverge, which calls only one has, and which steps differ.',
    )
    .argument('<left>', "a session's id, or its beginning", parseSession)
    .argument('<right>', 'another one', parseSession)
  return withService(command)
    .addHelpText(
      'after',
      `\nThe first ${ENTRIES_MAX.toLocaleString('en')} entries of each are compared.\n\nExample:\n  annals compare 01931b0e 01931b0f`,
    )
    .action(async (left_id: string, right_id: string, options: ConnectionOptions) => {
      const { compareSteps, isSame, stepsOf } = await import('@annals/messages/session')
      const { annals, output } = await connect(options)
      const left = await logOf(annals, await findSession(annals, left_id))
      const right = await logOf(annals, await findSession(annals, right_id))
      const compared = compareSteps(stepsOf(left.items), stepsOf(right.items))
      const different = compared.rows.filter((row) => !isSame(row))
      if (output.json) {
        const { parts_at, only_left, only_right } = compared
        const is_cut = left.is_cut || right.is_cut
        const steps = compared.rows.length
        return output.value({
          steps,
          same_before: parts_at ?? steps,
          only_left,
          only_right,
          different,
          is_cut,
        })
      }
      output.lines([
        ...(await headLines(annals, left.session, right.session, output)),
        ...(left.is_cut || right.is_cut ? [`Only the first ${ENTRIES_MAX} entries are compared.`] : []),
        '',
        ...(await differenceLines(compared, different, output)),
      ])
    })
}

async function logOf(
  annals: Annals,
  id: string,
): Promise<{ session: Session; items: TimelineItem[]; is_cut: boolean }> {
  const session = await annals.sessions.get(id)
  const items: TimelineItem[] = []
  for await (const page of annals.sessions.timeline(id, { limit: PAGE }).pages()) {
    items.push(...page.items)
    if (items.length >= ENTRIES_MAX) return { session, items, is_cut: page.has_more }
  }
  return { session, items, is_cut: false }
}

async function headLines(
  annals: Annals,
  left: Session,
  right: Session,
  { width, paint }: Output,
): Promise<string[]> {
  const [{ readBounds }, { cutTo }] = await Promise.all([
    import('./session_columns.js'),
    import('../terminal/text.js'),
  ])
  const [{ title: left_title }, { title: right_title }] = await Promise.all([
    readBounds(annals, left),
    readBounds(annals, right),
  ])
  const line = (side: string, { id }: Session, title = '') => {
    const said = cutTo(visibleLine(title.slice(0, BRIEF_CHARACTERS)), width - side.length - id.length - 2)
    return `${side}${paint('cyan', id)}  ${said}`.trimEnd()
  }
  return [line('left   ', left, left_title), line('right  ', right, right_title)]
}

async function differenceLines(
  {
    rows,
    parts_at,
    only_left,
    only_right,
  }: { rows: Row[]; parts_at: number | undefined } & Record<'only_left' | 'only_right', Step[]>,
  different: Row[],
  { width, paint }: Output,
): Promise<string[]> {
  const [{ detailOf }, { cutTo }] = await Promise.all([
    import('@annals/messages/session'),
    import('../terminal/text.js'),
  ])
  if (parts_at === undefined) return [`All ${rows.length.toLocaleString('en')} steps are the same.`]
  const line = (text: string) => cutTo(visibleLine(text.slice(0, BRIEF_CHARACTERS)), width)
  const stepText = ({ seq, name, kind, text, verdict }: Step) =>
    kind === 'call'
      ? `${seq}  ${name} ${detailOf(text) ?? ''}${verdict === 'failed' ? '  failed' : ''}`
      : `${seq}  ${name}: ${text}`
  const calls = (name: string, alone: Step[]) =>
    alone.length === 0
      ? []
      : [
          `${alone.length.toLocaleString('en')} ${alone.length === 1 ? 'call' : 'calls'} only on the ${name}`,
          ...alone.map((step) => line(`  ${stepText(step)}`)),
          '',
        ]
  return [
    `${different.length.toLocaleString('en')} of ${rows.length.toLocaleString('en')} steps differ. ${parts_at === 0 ? 'They differ from the first step.' : `They part after ${parts_at.toLocaleString('en')}.`}`,
    '',
    ...calls('left', only_left),
    ...calls('right', only_right),
    ...different.flatMap(({ left, right }) => [
      ...(left ? [paint('red', line(`- ${stepText(left)}`))] : []),
      ...(right ? [paint('green', line(`+ ${stepText(right)}`))] : []),
      // What it returned, where the calls are the same.
      ...(left && right && left.text === right.text && left.result !== right.result
        ? [line(`    - ${left.result ?? ''}`), line(`    + ${right.result ?? ''}`)]
        : []),
    ]),
  ]
}
