import { writeJson } from '@annals/messages/json'

/** Characters that an answer may have, roughly: a model reads all of it. */
export const ANSWER_LENGTH_MAX = 60_000

/** Shares out the characters of one part of an answer to the texts in it, in the order in which they ask. */
export class Room {
  #left: number

  constructor(characters: number) {
    this.#left = characters
  }

  get is_full(): boolean {
    return this.#left <= 0
  }

  /** The text, or as much of its beginning as there is room for, and its length. */
  text(text: string): string {
    const shown = shortened(text, this.#left)
    this.#left -= shown.length
    return shown
  }

  /** The value, or if there is no room for it, the beginning of its JSON. */
  value(value: unknown): unknown {
    const json = writeJson(value)
    const shown = this.text(json)
    return shown === json ? value : shown
  }
}

/** Cuts a text that is longer than `max` characters, and says how long it is. */
export function shortened(text: string, max: number): string {
  return text.length <= max ? text : `${slice(text, 0, Math.max(0, max))}… [${text.length} characters in all]`
}

/** A part of a text that halves no character: neither edge is the second code unit of a surrogate pair. */
export function slice(text: string, from: number, to: number): string {
  const isHalf = (unit: number) => unit >= 0xdc00 && unit <= 0xdfff
  const edge = (at: number) => (isHalf(text.charCodeAt(at)) ? at + 1 : at)
  return text.slice(edge(from), edge(to))
}
