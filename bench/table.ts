import type { Unit } from './part.ts'
import type { MeasuredFigure, PartResult, Results } from './results.ts'

const HEADINGS = ['part', 'figure', 'value', 'spread', 'at least', 'aim', 'verdict']

/** The table for a terminal. */
export function textTable(results: Results): string {
  const rows = [HEADINGS, ...rowsOf(results)]
  const widths = HEADINGS.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  )
  return `${lines.join('\n')}\n`
}

/** The table for the docs: what the chart shows, too. The JSON has the rest. */
export function markdownTable(results: Results): string {
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`
  const rows = rowsOf(results, isHeadline)
  return [line(HEADINGS), line(HEADINGS.map(() => '---')), ...rows.map(line)].join('\n')
}

/** Whether readers of the docs care: the figure has a bound, and is not one of a hundred variants. */
export function isHeadline({ at_least, charted }: MeasuredFigure): boolean {
  return at_least !== undefined && charted !== false
}

/** The run's circumstances, in a sentence. */
export function describeMachine({ annals, node, postgres, machine, parts }: Results): string {
  const database = postgres.kind === 'embedded' ? 'the embedded PostgreSQL' : 'PostgreSQL'
  return (
    `Annals ${annals} on Node ${node} and ${database} ${postgres.version}, fsync ${postgres.settings.fsync}; ` +
    `${machine.cpus} cores (${machine.model}) that the load generator shares, ${machine.memory_gb} GB, ${machine.os}. ` +
    describeOthers(Object.values(parts))
  )
}

/** What else ran meanwhile, which spoils figures. */
function describeOthers(parts: PartResult[]): string {
  const shares = parts.flatMap(({ others_share }) => others_share ?? [])
  if (shares.length === 0) return ''
  const most = Math.round(Math.max(...shares) * 100)
  const warning = most > 10 ? ' Measure again when it is quiet.' : ''
  return `Other programs used up to ${most} % of the processors.${warning}`
}

function rowsOf({ parts }: Results, isShown = (_figure: MeasuredFigure) => true): string[][] {
  return Object.entries(parts).flatMap(([part, { figures }]) =>
    figures.filter(isShown).map((figure, index) => [index === 0 ? part : '', ...cells(figure)]),
  )
}

function cells(figure: MeasuredFigure): string[] {
  const { name, note, value, low, high, unit, better, at_least, aim, verdict, values } = figure
  const bound = (limit: number | undefined) =>
    limit === undefined ? '' : `${better === 'higher' ? '≥' : '≤'} ${formatValue(limit, unit)}`
  const spread =
    values.length < 2 ? '' : `${formatValue(low!, unit)} to ${formatValue(high!, unit)} (${values.length})`
  return [
    note ? `${name} (${note})` : name,
    value === undefined ? '' : formatValue(value, unit),
    spread,
    bound(at_least),
    bound(aim),
    verdict,
  ]
}

/** Three digits that say something, and the unit. */
export function formatValue(value: number, unit: Unit): string {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2
  const text = value >= 1_000 ? Math.round(value).toLocaleString('en-US') : trimZeros(value.toFixed(digits))
  return unit === 'ratio' ? text : unit === '/s' ? `${text}/s` : `${text} ${unit}`
}

function trimZeros(text: string): string {
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text
}
