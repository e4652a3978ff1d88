const STRING_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/**
 * Parses JSON without losing a digit: numbers come as `#` and their exact value in one canonical spelling,
 * strings and keys as `$` and their text. Two texts say the same exactly if what this gives is deeply equal.
 */
export function exactJson(text: string): unknown {
  const marked = text.replace(STRING_OR_NUMBER, (token) =>
    token.startsWith('"') ? `"$${token.slice(1)}` : `"#${canonicalNumber(token)}"`,
  )
  return JSON.parse(marked)
}

/** The part of an exactly parsed value under the given keys. */
export function exactAt(text: string, ...keys: string[]): unknown {
  let value = exactJson(text)
  for (const key of keys) value = (value as Record<string, unknown>)[`$${key}`]
  return value
}

/** `1.50`, `15e-1` and `0.15E1` are all `15e-1`; every zero is `0`. */
function canonicalNumber(numeral: string): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(numeral)
  if (!match) throw new Error(`Not a JSON number: ${numeral.slice(0, 40)}`)
  const [, sign, integer = '', fraction = '', exponent = '0'] = match
  const digits = `${integer}${fraction}`.replace(/^0+/, '')
  const significant = digits.replace(/0+$/, '')
  if (significant === '') return '0'
  const power = Number(exponent) - fraction.length + (digits.length - significant.length)
  return `${sign}${significant}e${power}`
}
