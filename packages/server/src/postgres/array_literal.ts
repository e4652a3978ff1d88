/**
 * PostgreSQL's arrays as text. The driver would quote every element with a regular expression; ids and numbers, which
 * is what a flush mostly consists of, need no quotes.
 */

/** Of values that need no quotes: uuids, numbers, booleans. */
export function plainArray(values: ReadonlyArray<string | number | boolean | null>): string {
  // join writes null as an empty string, which is not what an array literal takes.
  return `{${values.map((value) => value ?? 'NULL').join(',')}}`
}

const PLAIN_TEXT = /^[\w.:/-]+$/

/** Of any texts. */
export function textArray(values: ReadonlyArray<string | null>): string {
  return `{${values.map(textElement).join(',')}}`
}

function textElement(value: string | null): string {
  if (value === null) return 'NULL'
  if (PLAIN_TEXT.test(value) && value.toUpperCase() !== 'NULL') return value
  return `"${value.replaceAll(/["\\]/g, '\\$&')}"`
}
