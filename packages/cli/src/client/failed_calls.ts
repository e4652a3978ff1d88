import type { ToolFailures } from '@annals/client'
import type { Output } from '../terminal/output.js'
import { linesOf } from '../terminal/text.js'
import { visibleLine } from '../terminal/visible.js'

const RETURNED = '  returned     '
const SAID = '  then said    '
const CALLED = '  then called  '

type FailedCall = ToolFailures['groups'][number]['examples'][number]

/** Failures of one kind in some lines: in columns, all but the first words of what was said would be cut off. */
export function groupLines(
  { message, failures, examples }: ToolFailures['groups'][number],
  least: string,
  { width, paint }: Output,
): string[] {
  const part = (label: string, text: string) =>
    linesOf(visibleLine(text.trim().replaceAll(/\s+/g, ' ')), width - label.length).map(
      (line, index) => (index === 0 ? paint('dim', label) : ' '.repeat(label.length)) + line,
    )
  const [newest, ...more] = examples
  return [
    ...part(`${least}${failures.toLocaleString('en')} × `, message ?? '(no message)'),
    ...part(RETURNED, newest?.result ?? ''),
    ...comesNext(newest).flatMap(([label, text]) => part(label, text)),
    ...[newest, ...more].flatMap((call) =>
      call
        ? linesOf(
            `  ${paint('cyan', call.session_id)}  seq ${call.seq}  ${visibleLine(call.title ?? '')}`.trimEnd(),
            width,
          ).slice(0, 1)
        : [],
    ),
  ]
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
