/** What regular expressions, parsers, token counters and Markdown have disliked somewhere. */
export const SHAPES: Record<string, string> = {
  spaces: ' ',
  tabs: '\t',
  'line separators': '\u2028',
  'zero-width joiners': '\u200d',
  'ideographic spaces': '\u3000',
  'combining marks': 'a\u0301',
  'one letter': 'a',
  'letters of both cases, digits and marks': 'aA1!',
  quotes: '>',
  emphasis: '*a_',
  brackets: '[',
  'links that never end': '[a](',
  backticks: '`a',
  'escaped quotes': '\\"',
  emoji: '👩‍👩‍👧‍👦',
  dashes: 'a-',
}

/** A text of about so many bytes of UTF-8 that repeats a shape. */
export function repeated(shape: string, bytes: number): string {
  return shape.repeat(Math.max(1, Math.floor(bytes / Buffer.byteLength(shape))))
}
