import type { Paint, Style } from './paint.js'
import { pairsOf } from './pairs.js'
import { cutTo, padTo, widthOf } from './text.js'
import { visibleLine } from './visible.js'

const GAP = 2
const WIDTH_MIN = 6

/** A column of a table of `Row`s. */
export interface Column<Row> {
  title: string
  text: (row: Row) => string
  style?: Style
  /** May be shortened if the terminal is too narrow: the widest such column first. */
  shrinks?: boolean
  /** Omitted on a terminal narrower than this. */
  from_width?: number
}

/** The lines of a table that fits into `width` columns, beginning with the titles. */
export function tableLines<Row>(all: Column<Row>[], rows: Row[], width: number, paint: Paint): string[] {
  const columns = all.filter(({ from_width = 0 }) => width >= from_width)
  const cells = rows.map((row) => columns.map((column) => visibleLine(column.text(row))))
  const widths = columns.map(({ title }, index) =>
    cells.reduce((most, row) => Math.max(most, widthOf(row[index]!)), widthOf(title)),
  )
  shrink(columns, widths, width)
  const line = (texts: string[], style: (index: number) => Style | undefined) =>
    texts
      .map((text, index) => {
        const cut = cutTo(text, widths[index]!)
        const padded = index === texts.length - 1 ? cut : padTo(cut, widths[index]!)
        const name = style(index)
        return name ? paint(name, padded) : padded
      })
      .join(' '.repeat(GAP))
      .trimEnd()
  return [
    line(
      columns.map(({ title }) => title),
      () => 'dim',
    ),
    ...cells.map((row) => line(row, (index) => columns[index]!.style)),
  ]
}

/** Prints the fields that a resource, as JSON text, has, one on a line. */
export function printFields(fields: string[], resource: string): void {
  const value = JSON.parse(resource) as Record<string, unknown>
  const shown = fields.filter((field) => value[field] != null)
  const width = Math.max(...shown.map(({ length }) => length)) + GAP
  process.stdout.write(
    shown.map((field) => `${field.padEnd(width)}${visibleLine(textOf(value[field]))}\n`).join(''),
  )
}

/** Prints resources that are JSON texts as a table of some fields, of any width. */
export function printTable(fields: string[], resources: string[]): void {
  const rows = resources.map((json) => JSON.parse(json) as Record<string, unknown>)
  const columns = fields.map((title) => ({
    title,
    text: (row: Record<string, unknown>) => textOf(row[title]),
  }))
  const lines = tableLines(columns, rows, Number.POSITIVE_INFINITY, (_style, text) => text)
  process.stdout.write(lines.map((line) => `${line}\n`).join(''))
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return '-'
  if (Array.isArray(value)) return value.join(',')
  return typeof value === 'object' ? pairsOf(value as Record<string, unknown>) : String(value)
}

function shrink(columns: Column<never>[], widths: number[], width: number): void {
  const total = () => widths.reduce((sum, one) => sum + one, 0) + GAP * (widths.length - 1)
  for (let excess = total() - width; excess > 0; excess = total() - width) {
    const candidates = columns.flatMap(({ shrinks }, index) =>
      shrinks && widths[index]! > WIDTH_MIN ? [index] : [],
    )
    if (candidates.length === 0) return
    const widest = candidates.reduce((best, index) => (widths[index]! > widths[best]! ? index : best))
    const second = Math.max(
      WIDTH_MIN,
      ...candidates.filter((index) => index !== widest).map((i) => widths[i]!),
    )
    widths[widest] = Math.max(WIDTH_MIN, widths[widest]! - excess, Math.min(widths[widest]! - 1, second))
  }
}
