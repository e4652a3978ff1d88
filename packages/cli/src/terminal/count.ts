/** A count with its noun, given in the plural: `1 entry`, `2 learning spaces`. */
export function countOf(count: number, plural: string): string {
  const noun = count === 1 ? plural.replace(/ies$/, 'y').replace(/s$/, '') : plural
  return `${count.toLocaleString('en')} ${noun}`
}

/** Named even if there are none: whoever moves sessions looks for these first. */
const ALWAYS_NAMED = new Set(['sessions', 'entries', 'messages'])

/** Counts of tables with their nouns, without those of which there is nothing. */
export function countsOf(counts: Record<string, number>): string[] {
  return Object.entries(counts)
    .filter(([table, count]) => count > 0 || ALWAYS_NAMED.has(table))
    .map(([table, count]) => countOf(count, table.replaceAll('_', ' ')))
}
