/** Shapes that parsers, regular expressions, token counters and Markdown dislike, repeated up to a length. */

const TEXT_PIECES = {
  spaces: ' ',
  'wide spaces': '\u2003\u00a0',
  'line feeds': '\n',
  quotes: '>',
  'open emphasis': '*a_',
  'mixed case': 'aA1!',
  letters: 'a',
  'words of a letter': 'a ',
  punctuation: '!?;',
  'double quotes': '"',
  backslashes: '\\',
  emoji: '👩‍👧',
  'combining marks': 'e\u0301\u0323',
  digits: '1234567890',
  exponents: '1e10,',
  slashes: '/~1',
  controls: '\u0001',
  brackets: '[(<{',
} as const

/** Texts of so many bytes. */
export function costlyTexts(bytes: number): Array<[string, string]> {
  const texts: Array<[string, string]> = Object.entries(TEXT_PIECES).map(([name, piece]) => [
    name,
    piece.repeat(Math.floor(bytes / Buffer.byteLength(piece))),
  ])
  return [
    ...texts,
    ['marks out of order', `e${'\u0301'.repeat(bytes / 4 - 1)}${'\u0323'.repeat(bytes / 4 - 1)}`],
    ['Chinese', varied(Math.floor(bytes / 3), 0x4e00, 3_000)],
    ['lower case', varied(bytes, 97, 26)],
  ]
}

/** Letters that do not repeat themselves, the same each time. */
function varied(length: number, first: number, count: number): string {
  let state = 12_345
  return Array.from({ length }, () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return String.fromCharCode(first + ((state >> 8) % count))
  }).join('')
}

/** JSON texts of about so many bytes, of values that are costly to read, to check or to write. */
export function costlyJson(bytes: number): Array<[string, string]> {
  const array = (item: string) =>
    `[${Array(Math.floor(bytes / (item.length + 1)))
      .fill(item)
      .join(',')}]`
  const nest = `${'['.repeat(900)}${']'.repeat(900)}`
  const members = (member: (index: number) => string, length: number) =>
    `{${Array.from({ length: Math.floor(bytes / length) }, (_, index) => member(index)).join(',')}}`
  return [
    ['empty objects', array('{}')],
    ['empty arrays', array('[]')],
    ['nested arrays', array(nest)],
    ['numbers', array('1')],
    ['numbers with exponents', array('1e10')],
    ['numbers of many digits', array('12345678901234567890')],
    ['empty strings', array('""')],
    ['escapes', `"${'\\u0001'.repeat(Math.floor(bytes / 6))}"`],
    ['escaped surrogates', `"${'\\ud83d\\ude00'.repeat(Math.floor(bytes / 12))}"`],
    ['many members', members((index) => `"${String(index).padStart(7, '0')}":1`, 12)],
    ['one member again and again', members(() => '"a":1', 6)],
    ['what cannot be stored, at the end', array('{}').replace(/\]$/, ',"\\u0000"]')],
  ]
}

/** As much of a text, as JSON, as so many bytes hold; some characters are six as JSON. */
export function fittingJson(text: string, bytes_max: number): string {
  const json = JSON.stringify(text)
  return Buffer.byteLength(json) > bytes_max ? fittingJson(text.slice(0, text.length / 2), bytes_max) : json
}

/** Those of many that a place gets, another part for each, so that all places together get all of them. */
export function shareOf<T>(many: readonly T[], place: number, count: number): T[] {
  return Array.from({ length: count }, (_, index) => many[(place * count + index) % many.length]!)
}
