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
  private readonly documents: { item: Item; counts: Map<string, number>; length: number }[] = []
  private readonly holders = new Map<string, number>()
  private length = 0

  add(item: Item, text: string): void {
    const words = wordsOf(text)
    const counts = new Map<string, number>()
    for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
    for (const word of counts.keys()) this.holders.set(word, (this.holders.get(word) ?? 0) + 1)
    this.documents.push({ item, counts, length: words.length })
    this.length += words.length
  }

  /** The items that have any of the words, best first; equal ones in the order in which they were added. */
  find(query: string, limit: number): Item[] {
    const words = [...new Set(wordsOf(query))].filter((word) => this.holders.has(word))
    const average = this.length / Math.max(this.documents.length, 1) || 1
    const weights = words.map((word) => this.weightOf(word))
    const scored = this.documents.map(({ item, counts, length }) => {
      const norm = K1 * (1 - B + (B * length) / average)
      let score = 0
      for (const [index, word] of words.entries()) {
        const count = counts.get(word)
        if (count) score += (weights[index]! * count * (K1 + 1)) / (count + norm)
      }
      return { item, score }
    })
    return scored
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score)
      .slice(0, limit)
      .map(({ item }) => item)
  }

  private weightOf(word: string): number {
    const holders = this.holders.get(word)!
    return Math.log(1 + (this.documents.length - holders + 0.5) / (holders + 0.5))
  }
}
