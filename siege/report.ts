import { BOUNDS, inWords, type Judged } from './verdict.ts'

const ANSWERS_WIDTH = 60

/** A line for each attack, under these. */
export const COLUMNS = row(
  'attack',
  'success',
  'of',
  'p99 ms',
  'loop ms',
  'MB',
  'again ms',
  'attackers were answered',
)

/** One attack in one line, and a line for each bound that it broke. */
export function attackLine(judged: Judged): string {
  const { attack, success, asked, p99_awake_ms, loop_ms, rss_max_mb, recovered_ms, answers } = judged
  const line = row(
    attack,
    `${(Math.floor(success * 1_000) / 10).toFixed(1)} %`,
    String(asked),
    String(Math.round(p99_awake_ms)),
    String(Math.round(loop_ms)),
    `${rss_max_mb}/${BOUNDS.rss_mb_max}`,
    recovered_ms === undefined ? 'never' : String(Math.round(recovered_ms)),
    cut(inWords(answers) || 'nothing'),
  )
  return [line, ...brokenLines(judged)].join('\n')
}

/** A line for each bound that an attack broke. */
export function brokenLines({ attack, broken }: Judged): string[] {
  return broken.map((sentence) => `! ${attack}: ${sentence}`)
}

function row(name: string, ...cells: string[]): string {
  const widths = [8, 6, 8, 8, 8, 9]
  return `${name.padEnd(24)}${cells.map((cell, at) => (at < widths.length ? cell.padStart(widths[at]!) : `  ${cell}`)).join('')}`
}

function cut(text: string): string {
  return text.length <= ANSWERS_WIDTH ? text : `${text.slice(0, ANSWERS_WIDTH - 1)}…`
}
