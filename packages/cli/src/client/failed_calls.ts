import type { FailedCall } from '@annals/messages/session'
import type { Output } from '../terminal/output.js'
import { linesOf } from '../terminal/text.js'
import { visibleLine } from '../terminal/visible.js'

/** A failed call of a session. */
export type Failure = FailedCall & { session_id: string }

const RETURNED = '  returned   '
const SAID = '  then said  '

/** A failed call in some lines: in columns, all but the first words of what was said would be cut off. */
export function failureLines({ session_id, seq, result, said }: Failure, { width, paint }: Output): string[] {
  const part = (label: string, text: string) =>
    linesOf(visibleLine(text.trim().replaceAll(/\s+/g, ' ')), width - label.length).map(
      (line, index) => (index === 0 ? paint('dim', label) : ' '.repeat(label.length)) + line,
    )
  return [
    `${paint('cyan', session_id)}  seq ${seq}`,
    ...part(RETURNED, result),
    ...part(SAID, said?.text ?? 'nothing'),
  ]
}
