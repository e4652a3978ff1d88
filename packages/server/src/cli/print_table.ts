/** Prints resources that are JSON texts as a table of some of their fields, for a person. */
export function printTable(fields: string[], resources: string[]): void {
  const rows = resources.map((json) => {
    const resource = JSON.parse(json) as Record<string, unknown>
    return fields.map((field) => cell(resource[field]))
  })
  const widths = fields.map((field, index) =>
    Math.max(field.length, ...rows.map((row) => row[index]!.length)),
  )
  for (const row of [fields, ...rows]) {
    process.stdout.write(
      `${row
        .map((text, index) => text.padEnd(widths[index]!))
        .join('  ')
        .trimEnd()}\n`,
    )
  }
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return '-'
  return Array.isArray(value) ? value.join(',') : String(value)
}
