/**
 * PostgreSQL's arrays as text. The driver would quote every element with a regular expression; ids and numbers, most
 * of a flush, need no quotes.
 */

/** For values that need no quotes: uuids, numbers, booleans. */
export function plainArray(values: ReadonlyArray<string | number | boolean | null>): string {
  // join writes null as an empty string, which an array literal does not accept.
  return `{${(values.includes(null) ? values.map((value) => value ?? 'NULL') : values).join(',')}}`
}

const PLAIN_TEXT = /^[\w.:/-]+$/

/** For any texts. */
export function textArray(values: ReadonlyArray<string | null>): string {
  return `{${values.map(textElement).join(',')}}`
}

function textElement(value: string | null): string {
  if (value === null) return 'NULL'
  if (PLAIN_TEXT.test(value) && (value.length !== 4 || value.toUpperCase() !== 'NULL')) return value
  return `"${value.replaceAll(/["\\]/g, '\\$&')}"`
}
