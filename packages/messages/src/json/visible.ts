/**
 * What a reader of a text may not see as it is: control characters, which terminals obey; marks of direction, which make
 * text look different from what it is; characters without width, and tags. Those that join letters, or keep them apart,
 * do so in some scripts and between the parts of an emoji; elsewhere they are not seen.
 */
export const DECEIVING =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /[\u200c\u200d](?<!(?:[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Mandaic}\p{Script=Nko}\p{Script=Mongolian}\p{Script=Adlam}\p{Script=Thaana}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}\p{Extended_Pictographic}\p{Emoji_Modifier}]|\ufe0f)[\u200c\u200d])|[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|\p{Cs}/gu

/** A JSON text in which such characters are escapes, so that they are seen: its value does not change. */
export function visibleJson(json: string): string {
  return json.replace(DECEIVING, (character) =>
    Array.from(
      { length: character.length },
      (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`,
    ).join(''),
  )
}

/**
 * As adapters write what JSON in PostgreSQL cannot hold: U+0000, a lone surrogate, and U+FDD0 itself, each after a U+FDD0.
 * They undo it (`packages/adapters/kit/src/escape.ts`); all other readers are shown what it stands for.
 */
const ADAPTER_ESCAPE = /\uFDD0(0|d[89a-f][0-9a-f]{2}|\uFDD0)/g
const ESCAPE = '\uFDD0'
const REPLACEMENT = '\uFFFD'

/** A text, or a JSON text, with U+FFFD in place of each character that an adapter escaped. */
export function withoutEscapes(text: string): string {
  if (!text.includes(ESCAPE)) return text
  return text.replace(ADAPTER_ESCAPE, (_, code: string) => (code === ESCAPE ? ESCAPE : REPLACEMENT))
}

/** Whether a value of JSON has a U+FDD0 anywhere. A loop: it may nest deeper than the stack. */
export function mayHaveEscapes(root: unknown): boolean {
  const left: unknown[] = [root]
  while (left.length > 0) {
    const value = left.pop()
    if (typeof value === 'string') {
      if (value.includes(ESCAPE)) return true
    } else if (Array.isArray(value)) for (const member of value) left.push(member)
    else if (typeof value === 'object' && value !== null)
      for (const [key, member] of Object.entries(value)) left.push(key, member)
  }
  return false
}
