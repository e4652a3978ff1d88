import {
  createSession,
  escapeJson,
  ifFound,
  isError,
  type KeyedNewSession,
  stableId,
} from '@annals/adapter-kit'
import type { Annals, NewEntry } from '@annals/client'

/**
 * A stream is a session below its chat's: chunks, of which the first says that it has begun, and then one end. Each append
 * of the producer names the seq before it, and the end has an id that only one entry can have. So whoever ends the stream
 * first ends it for everybody, the producer included.
 */
export const CHUNKS_TYPE = 'ai_sdk.chunks'
export const END_TYPE = 'ai_sdk.stream_end'
/** The event in a chat's log that names its newest stream; its key is the same. */
export const STREAM_TYPE = 'ai_sdk.stream'

/** `failed`: its source failed; `interrupted`: its producer was silent for too long. */
export type StreamEnd = 'done' | 'stopped' | 'failed' | 'interrupted'

/** For streams whose final message nobody stores. */
const EXPIRES_IN_S = 24 * 60 * 60
/** For the others: slow readers still get the end. */
const FINISHED = { expires_in_s: 30 }

export function chatSession(chatId: string): KeyedNewSession & { configs: object } {
  return { use_uuid: stableId('ai-sdk', chatId), configs: { ai_sdk_chat: chatId } }
}

export function streamSession(chatId: string, streamId: string): KeyedNewSession {
  const use_uuid = stableId('ai-sdk', 'stream', chatId, streamId)
  const { use_uuid: parent } = chatSession(chatId)
  return { use_uuid, parent, configs: { ai_sdk_stream: streamId }, expires_in_s: EXPIRES_IN_S }
}

/** Without a text, it says no more than that its producer lives. */
export function chunksEvent(text = ''): NewEntry {
  return escapeJson({ kind: 'event' as const, type: CHUNKS_TYPE, data: { text } })
}

/** The end of the stream with this session. Only the first one is stored. */
export function endEvent(session_id: string, status: StreamEnd): NewEntry {
  return { kind: 'event', type: END_TYPE, id: stableId(session_id, 'end'), data: { status } }
}

/** Ends a stream so, unless it has an end; false if it has another one, or there is no such stream. */
export async function endStream(annals: Annals, session_id: string, status: StreamEnd): Promise<boolean> {
  try {
    await annals.sessions.appendBatch(session_id, [endEvent(session_id, status)])
    return true
  } catch (error) {
    if (isError(error, 'session_not_found', 'idempotency_key_reused')) return false
    throw error
  }
}

/** Lets the stream's session go, now that the chat has what it said. One that is not stored yet finds itself ended. */
export async function finishStream(annals: Annals, chatId: string, streamId: string): Promise<void> {
  const finished = { ...streamSession(chatId, streamId), ...FINISHED }
  if (await ifFound(annals.sessions.update(finished.use_uuid, FINISHED), undefined)) return
  await createSession(annals, finished)
  await endStream(annals, finished.use_uuid, 'done')
}
