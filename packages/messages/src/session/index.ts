export { detailOf } from './call_detail.js'
export { type IndexedCall, type IndexedPiece, type IndexState, indexCalls } from './call_index.js'
export {
  align,
  type Comparison,
  compareSteps,
  isSame,
  type Row,
  type Step,
  stepsOf,
} from './compare.js'
export type {
  Block,
  LogEntry,
  LoggedEvent,
  LoggedMessage,
  Medium,
  ReadEntry,
  Streamed,
  ToolCall,
  ToolResult,
  Verdict,
} from './entry.js'
export { textSaysFailed } from './failures.js'
export type { KeptState } from './kept_state.js'
export {
  type Outcome,
  type OutcomeWords,
  outcomeOf,
  type ShownOutcome,
  shownOutcome,
  verdictOf,
} from './outcome.js'
export { InvalidPrices, type Prices, readPriceList, SessionCost } from './session_cost.js'
export { isNoise, isShownElsewhere, SessionReader } from './session_reader.js'
export { sessionTitle } from './session_title.js'
