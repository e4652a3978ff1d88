export {
  BATCH_ENTRIES_MAX,
  BODY_BYTES_MAX,
  byteLength,
  cutIntoBatches,
  UnstorableEntries,
  withoutRepeatedIds,
} from './batches.js'
export { escapeJson, escapeJsonText, unescapeJson, unescapeJsonText } from './escape.js'
export {
  appendToKeyed,
  createdOnFirstUse,
  createSession,
  type KeyedAppendOptions,
  type KeyedNewSession,
} from './keyed_session.js'
export { LargeEventReader, type NewEventWithId, PART_TYPE, partsOf, splitLargeEvent } from './large_events.js'
export { idempotencyKey, stableId } from './stable_names.js'
