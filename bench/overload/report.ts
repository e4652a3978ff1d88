/** A figure, and the bound that it must keep, if there is one. */
export interface Line {
  name: string
  unit: string
  value: number
  at_most?: number
}

export function report(lines: Line[]): string {
  const width = Math.max(...lines.map(({ name }) => name.length))
  const rows = lines.map(({ name, unit, value, at_most }) => {
    const figure = `${name.padEnd(width)}  ${rounded(value).padStart(9)} ${unit.padEnd(2)}`
    if (at_most === undefined) return figure.trimEnd()
    return `${figure}  at most ${rounded(at_most)}: ${value <= at_most ? 'kept' : 'BROKEN'}`
  })
  return `${rows.join('\n')}\n`
}

function rounded(value: number): string {
  return Math.abs(value) < 10 && !Number.isInteger(value) ? value.toFixed(1) : Math.round(value).toString()
}
