import type { ToolFailures } from '@annals/client'
import type { Output } from '../terminal/output.js'
import { cutTo, linesOf } from '../terminal/text.js'
import { visibleLine } from '../terminal/visible.js'

const RETURNED = '  returned     '
const SAID = '  then said    '
const CALLED = '  then called  '
/** Less of a title tells nothing. */
const TITLE_MIN = 12

type FailedCall = ToolFailures['groups'][number]['examples'][number]

/** Failures of one kind in some lines: in columns, all but the first words of what was said would be cut off. */
export function groupLines(
  { message, failures, examples }: ToolFailures['groups'][number],
  least: string,
  { width, paint }: Pick<Output, 'width' | 'paint'>,
): string[] {
  const part = (label: string, text: string) =>
    linesOf(visibleLine(text.trim().replaceAll(/\s+/g, ' ')), width - label.length).map(
      (line, index) => (index === 0 ? paint('dim', label) : ' '.repeat(label.length)) + line,
    )
  const [newest] = examples
  const seq_length = Math.max(...examples.map(({ seq }) => String(seq).length))
  return [
    ...part(`${least}${failures.toLocaleString('en')} × `, message ?? '(no message)'),
    ...part(RETURNED, newest?.result ?? ''),
    ...comesNext(newest).flatMap(([label, text]) => part(label, text)),
    ...examples.map((call) => placeLine(call, seq_length, { width, paint })),
  ]
}

/** Where a call is: its session and its seq in full, on however narrow a terminal, and what there is room for of the title. */
function placeLine(
  { session_id, seq, title }: FailedCall,
  seq_length: number,
  { width, paint }: Pick<Output, 'width' | 'paint'>,
): string {
  const place = `seq ${String(seq).padEnd(seq_length)}`
  const room = width - `  ${session_id}  ${place}  `.length
  const shown = title === null || room < TITLE_MIN ? '' : cutTo(visibleLine(title), room)
  return `  ${paint('cyan', session_id)}  ${place}  ${shown}`.trimEnd()
}

/** What came after a failed call, up to what the agent said next: it may have called another tool before it said anything. */
function comesNext(failed: FailedCall | undefined): Array<[label: string, text: string]> {
  const said = failed?.said ?? null
  const called = failed?.called ?? null
  const isBefore = called !== null && (said === null || called.seq < said.seq)
  return [
    ...(isBefore ? [[CALLED, `${called.name}, seq ${called.seq}`] satisfies [string, string]] : []),
    ...(said !== null || !isBefore ? [[SAID, said?.text ?? 'nothing'] satisfies [string, string]] : []),
  ]
}
