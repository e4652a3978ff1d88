/** Characters of a word that count; of a longer one, such as encoded bytes, the rest is not looked at. */
const WORD_LENGTH_MAX = 64

const RUN = /[\p{L}\p{N}\p{M}]+/gu
const NOT_ASCII = /[^\0-\x7f]/
/**
 * Marks that no writing puts on one letter: normalizing orders them, which takes quadratic time. As in UAX #15.
 * recheck: where there are fewer, each of them is looked at thirty times at most.
 */
const MARKS = /(\p{M}{30})\p{M}+/gu
/** Writing without spaces between words, or, as in Korean, with words that change their ends. */
const PIECE =
  /([\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}]+)|[^\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}]+/gu

/**
 * A word as it is searched, and where it stands in the text. `is_tail`: the last character of a run of pairs, which
 * stands for itself.
 */
export interface Word {
  text: string
  start: number
  end: number
  is_tail: boolean
}

/**
 * The words of a text, in order: letters, digits and marks, in NFKC and lower case. Of writing without spaces they are
 * pairs of characters that overlap, and the last character of a run: any two characters beside each other are found, and
 * one alone as the beginning of a pair.
 */
export function wordsOf(text: string): Word[] {
  const words: Word[] = []
  if (!NOT_ASCII.test(text)) {
    addAscii(words, text)
    return words
  }
  for (const { 0: run, index } of text.matchAll(RUN)) {
    if (NOT_ASCII.test(run)) addForeign(words, run, index)
    else addWord(words, run.toLowerCase(), index, index + run.length)
  }
  return words
}

/** As the rest does it, in a third of the time: most texts are ASCII. */
function addAscii(words: Word[], text: string): void {
  const lower = text.toLowerCase()
  let start = -1
  for (let at = 0; at <= lower.length; at++) {
    const code = lower.charCodeAt(at)
    const isOfWord = (code >= 0x61 && code <= 0x7a) || (code >= 0x30 && code <= 0x39)
    if (isOfWord && start < 0) start = at
    if (isOfWord || start < 0) continue
    addWord(words, lower.slice(start, at), start, at)
    start = -1
  }
}

function addForeign(words: Word[], run: string, at: number): void {
  // A final sigma is no other letter; NFKC once more, since lower case may leave marks that compose.
  const normal = run
    .replaceAll(MARKS, '$1')
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll('ς', 'σ')
    .normalize('NFKC')
  // Else it is only known that the word stands somewhere in the run.
  const isAligned = normal.length === run.length
  for (const { 0: part, index: from } of normal.matchAll(RUN)) {
    for (const { 0: piece, 1: unspaced, index } of part.matchAll(PIECE)) {
      const start = isAligned ? at + from + index : at
      const end = isAligned ? start + piece.length : at + run.length
      if (unspaced === undefined) addWord(words, piece, start, end)
      else addPairs(words, piece, start, isAligned ? undefined : end)
    }
  }
}

/** `end`: where all of them end, if it is not known where each does. */
function addPairs(words: Word[], piece: string, start: number, end: number | undefined): void {
  const characters = [...piece]
  let from = start
  for (const [index, character] of characters.entries()) {
    const next = characters[index + 1]
    const text = next === undefined ? character : character + next
    words.push({ text, start: from, end: end ?? from + text.length, is_tail: next === undefined })
    if (end === undefined) from += character.length
  }
}

function addWord(words: Word[], word: string, start: number, end: number): void {
  words.push({ text: word.length > WORD_LENGTH_MAX ? cut(word) : word, start, end, is_tail: false })
}

function cut(word: string): string {
  const last = word.charCodeAt(WORD_LENGTH_MAX - 1)
  return word.slice(0, last >= 0xd800 && last < 0xdc00 ? WORD_LENGTH_MAX - 1 : WORD_LENGTH_MAX)
}
