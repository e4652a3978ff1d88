export { CallSpans, type NearestPlaces } from './call_spans.js'
export { COMPACTION_TYPE, type Compaction, readCompaction } from './compaction.js'
export { type ContextMessage, contextMessage, type StoredSeq, textMessage } from './context_message.js'
export { editBlob, type MessageEdit } from './edit_blob.js'
export { EditedMessages, type EditStrategy } from './edit_messages.js'
export { isShortened, joinedMessage, MESSAGE_PART_TYPE, MESSAGE_PARTS_MAX } from './large_message.js'
export {
  contextTurns,
  MessageTurns,
  type ShownMessage,
  storedSeq,
  storedTurn,
  type TurnEdits,
} from './message_turns.js'
export {
  type ContextCut,
  type ContextPlan,
  type ContextRules,
  type ContextWindow,
  placeholder,
  planContext,
  repeatCut,
} from './plan_context.js'
