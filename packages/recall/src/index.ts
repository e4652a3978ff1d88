export { SCORE } from './constants.js'
export { lineOf } from './line.js'
export { type AskedWord, formsOf, type Question, readQuestion } from './question.js'
export { type Lines, type ScoredEntry, scoreLines } from './score.js'
