import type { ToolFailures } from '@annals/client'
import type { Output } from '../terminal/output.js'
import { linesOf } from '../terminal/text.js'
import { visibleLine } from '../terminal/visible.js'

const RETURNED = '  returned   '
const SAID = '  then said  '

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
    ...part(SAID, newest?.said?.text ?? 'nothing'),
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
