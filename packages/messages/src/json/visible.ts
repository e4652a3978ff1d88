/**
 * What a reader of a text may not see as it is: control characters, which terminals obey; marks of direction, which make
 * text look different from what it is; characters without width, and tags.
 */
export const DECEIVING =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|\p{Cs}/gu

/** A JSON text in which such characters are escapes, so that they are seen: its value does not change. */
export function visibleJson(json: string): string {
  return json.replace(DECEIVING, (character) =>
    Array.from(
      { length: character.length },
      (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`,
    ).join(''),
  )
}
