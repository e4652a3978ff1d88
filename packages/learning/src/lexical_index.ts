const WORD = /[\p{L}\p{N}]+/gu
/** Scripts without spaces between words: each character counts as one. */
const IDEOGRAPH = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]/u
const K1 = 1.2
const B = 0.75
/** Words of a text that are looked at. */
const WORDS_MAX = 5_000

/** The words of a text, in lower case. */
export function wordsOf(text: string): string[] {
  const words: string[] = []
  for (const [word] of text.toLowerCase().matchAll(WORD)) {
    if (IDEOGRAPH.test(word)) words.push(...word)
    else words.push(word)
    if (words.length >= WORDS_MAX) break
  }
  return words
}

/** Texts that are found by their words (BM25). */
export class LexicalIndex<Item> {
  private readonly documents: { item: Item; length: number }[] = []
  /** By word, the documents that have it, each with how often. */
  private readonly holders = new Map<string, { document: number; count: number }[]>()
  private length = 0

  add(item: Item, text: string): void {
    const words = wordsOf(text)
    const document = this.documents.length
    for (const word of words) {
      const holders = this.holders.get(word) ?? []
      if (holders.length === 0) this.holders.set(word, holders)
      const last = holders.at(-1)
      if (last?.document === document) last.count += 1
      else holders.push({ document, count: 1 })
    }
    this.documents.push({ item, length: words.length })
    this.length += words.length
  }

  /** The items that have any of the words, best first; equal ones in the order in which they were added. */
  find(query: string, limit: number): Item[] {
    const average = this.length / Math.max(this.documents.length, 1) || 1
    const scores = new Map<number, number>()
    for (const word of new Set(wordsOf(query))) {
      const holders = this.holders.get(word) ?? []
      const weight = Math.log(1 + (this.documents.length - holders.length + 0.5) / (holders.length + 0.5))
      for (const { document, count } of holders) {
        const norm = K1 * (1 - B + (B * this.documents[document]!.length) / average)
        scores.set(document, (scores.get(document) ?? 0) + (weight * count * (K1 + 1)) / (count + norm))
      }
    }
    return [...scores]
      .sort(([one, a], [other, b]) => b - a || one - other)
      .slice(0, limit)
      .map(([document]) => this.documents[document]!.item)
  }
}
