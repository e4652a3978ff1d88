export { type AskedDate, gainOf, readDates } from './dates.js'
export { findByTask } from './find_by_task.js'
export {
  bySession,
  embeddedTexts,
  foundItem,
  indexedWords,
  recalledItem,
  recalledTexts,
  searchMatches,
  shortTitle,
  uncut,
  uncutItems,
} from './found_items.js'
export { countBySegment, type IndexedRun, indexedLine, joinRuns, rebuiltFrom } from './index_runs.js'
export { lineOf } from './line.js'
export { type AskedWord, formsOf, type Question, readQuestion } from './question.js'
export {
  entriesToRead,
  labelsOf,
  placeOf,
  questionCondition,
  type ReadEntry,
  type RecalledEntry,
  type RecalledSession,
  ranked,
  type ScoredRuns,
  scoreRuns,
  sessionsOf,
} from './recalled.js'
export { type Lines, type ScoredEntry, type ScoredSession, scoreLines } from './score.js'
export { type TextOfEntry, textReader } from './text.js'
export { readEmbeddings } from './vectors/embeddings_answer.js'
export { fusedEntries, fusedSessions } from './vectors/fused.js'
export { WordCounts } from './word_counts.js'
