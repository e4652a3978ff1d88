/** A count with its noun, given in the plural: `1 entry`, `2 learning spaces`. */
export function countOf(count: number, plural: string): string {
  const noun = count === 1 ? plural.replace(/ies$/, 'y').replace(/s$/, '') : plural
  return `${count} ${noun}`
}
