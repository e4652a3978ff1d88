export type { Dialect, Operation } from './dialect.js'
export { DIALECTS } from './dialects.js'
export {
  type Conversation,
  conversationOf,
  type Meaning,
  meaningOf,
  membersOf,
  originOf,
  sessionNamed,
  userNamed,
} from './meaning.js'
export { readLogRecords, readSpans } from './read_telemetry.js'
export { messagesIn, openAiMessage, type Said, textIn } from './said.js'
export {
  type Group,
  type Link,
  type Naming,
  type Part,
  recordsBySession,
  spansBySession,
} from './sort_out.js'
export {
  type Attributes,
  type Encoding,
  type LogRecord,
  type Origin,
  type Span,
  type SpanEvent,
  type Telemetry,
  Unreadable,
} from './telemetry.js'
