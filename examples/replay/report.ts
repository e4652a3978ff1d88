import { performance } from 'node:perf_hooks'

/** One line of the table: what was done, how many of it, and how long it took. */
interface Line {
  what: string
  count: number
  ms: number
}

const DIFFERENCES_SHOWN_MAX = 50

/** Keeps what the replay did and how long each part of it took. */
export class Report {
  readonly #lines: Line[] = []

  /** Does a part of the work and notes it under one or more names; `count` reads the numbers off its result. */
  async time<Result>(
    work: () => Promise<Result>,
    count: (result: Result) => Record<string, number>,
  ): Promise<Result> {
    const began = performance.now()
    const result = await work()
    const ms = performance.now() - began
    for (const [what, number] of Object.entries(count(result))) this.#lines.push({ what, count: number, ms })
    return result
  }

  /** The table as text. */
  toString(): string {
    const rows = this.#lines.map(({ what, count, ms }) => [
      what,
      `${count}`,
      `${(ms / 1000).toFixed(2)} s`,
      ms > 0 ? `${Math.round((count / ms) * 1000)}` : '',
    ])
    const table = [['', 'count', 'took', 'per second'], ...rows]
    const widths = [0, 1, 2, 3].map((column) => Math.max(...table.map((row) => row[column]!.length)))
    return table
      .map((row) =>
        row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))),
      )
      .map((row) => row.join('  ').trimEnd())
      .join('\n')
  }
}

/** The differences as text, the first of them if there are many. */
export function listDifferences(differences: string[]): string {
  const shown = differences.slice(0, DIFFERENCES_SHOWN_MAX).map((sentence) => `  ${sentence}`)
  const more = differences.length - shown.length
  return [
    `${differences.length} ${differences.length === 1 ? 'difference' : 'differences'}:`,
    ...shown,
    ...(more > 0 ? [`  and ${more} more`] : []),
  ].join('\n')
}
