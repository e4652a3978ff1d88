export { entryText, readEntry, SEARCHED_LENGTH_MAX, type SearchedEntry, type Told } from './entry_text.js'
export {
  cutSnippet,
  type Match,
  matchTerms,
  placesOfTerms,
  SNIPPET_LENGTH_MAX,
  type Snippet,
} from './find_terms.js'
export {
  indexedLabel,
  indexedWords,
  isExact,
  type SearchCondition,
  searchCondition,
} from './indexed_words.js'
export {
  chunksOf,
  InvalidQuery,
  parseSearchQuery,
  QUERY_WORDS_MAX,
  type SearchTerm,
  termOf,
} from './search_query.js'
export { type Word, wordsOf } from './words.js'
