/**
 * What scores are made with. `npm run bench -- recall` measures what a change of one does to questions whose answers are
 * known; docs/search.md has the figures, which are of the same questions that these were chosen with. `near` and `old` were
 * never varied.
 */
export const SCORE = {
  /** BM25: how soon another occurrence counts for less, and how much for long entries. */
  k1: 0.8,
  b: 0.25,
  /** A word as it was asked for, beside another form of it. */
  exact: 1.2,
  /** How much more an entry counts that has all of the words, by their weights. */
  cover: 2,
  /** Of the score of each entry beside it, and of those further away. */
  beside: [0.35, 0.2, 0.1, 0.05],
  /** How much the frequency of a word among what was found counts, beside that in the project. */
  local: 0.5,
  /**
   * Results of tools are long lists; what people and models say is about something. What an import kept as it was, such as
   * progress, mostly repeats what messages say.
   */
  label: { tool: 0.8, event: 0.8, source: 0.3 },
  /** Of a session: what all of its entries say together, beside its best one. */
  together: 1.5,
  together_k: 1,
  /** What entries gain that happened when a question says, and up to some days before and after: beside 1. */
  dated: { day: 2, month: 1, year: 0.2, near_day: 0.5, near_month: 0.3, days: { before: 1, after: 10 } },
  /** Bonus for an entry whose words stand next to each other, as in the question. */
  near: 0.2,
  /** What the oldest entry loses beside the newest one. */
  old: 0.03,
}
