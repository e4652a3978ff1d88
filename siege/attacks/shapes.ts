/** What regular expressions, parsers, token counters and Markdown have disliked somewhere. */
const SHAPES: Record<string, string> = {
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

/** A shape, and whether letters stand around it: what looks for an end finds it late. */
export interface Text {
  shape: string
  isEnclosed: boolean
}

/** Every shape, alone and between letters. */
export const TEXTS: Text[] = [true, false].flatMap((isEnclosed) =>
  Object.values(SHAPES).map((shape) => ({ shape, isEnclosed })),
)

/** A text of about so many bytes of UTF-8. */
export function repeated({ shape, isEnclosed }: Text, bytes: number): string {
  const text = shape.repeat(Math.max(1, Math.floor(bytes / Buffer.byteLength(shape))))
  return isEnclosed ? `a${text}a` : text
}

/** The same for a URL, of about so many characters there. */
export function repeatedInUrl({ shape, isEnclosed }: Text, characters: number): string {
  const encoded = encodeURIComponent(shape)
  return repeated({ shape: encoded, isEnclosed }, characters)
}
