import { isError, unescapeJson } from '@annals/adapter-kit'
import type { Annals } from '@annals/client'
import { CHUNKS_TYPE, END_TYPE, endEvent, type StreamEnd } from './stored_streams.js'

/** What a client of the SDK is told of an end that the stream itself did not tell. */
const LAST_CHUNKS: Readonly<Record<StreamEnd, object | undefined>> = {
  done: undefined,
  stopped: { type: 'abort', reason: 'stopped' },
  failed: { type: 'error', errorText: 'The answer failed.' },
  interrupted: { type: 'error', errorText: 'The answer was interrupted.' },
}

/**
 * What the stream has said and says, as server-sent events, up to its end; without its first `skip_chunks`. A producer that
 * has stored nothing for `silence_ms`, while the service answered, is taken for dead. Reads no faster than it is read.
 */
export function readStream(
  ...of: [annals: Annals, session_id: string, silence_ms: number, skip_chunks: number]
): ReadableStream<string> {
  const closing = new AbortController()
  const texts = textsOf(closing.signal, ...of)
  const pull = async (controller: ReadableStreamDefaultController<string>) => {
    const { done, value } = await texts.next()
    if (done) controller.close()
    else controller.enqueue(value)
  }
  return new ReadableStream({ pull, cancel: () => closing.abort() }, { highWaterMark: 0 })
}

/**
 * A stream whose producer has died ends as interrupted: the reader says so in the log, after the last entry that it has
 * seen. So either the producer or the reader has its way, and every reader is told the same.
 */
async function* textsOf(
  signal: AbortSignal,
  annals: Annals,
  session_id: string,
  silence_ms: number,
  skip_chunks: number,
): AsyncGenerator<string, void, undefined> {
  const { sessions } = annals
  let [seq, isOver] = [0, false]
  let timer: NodeJS.Timeout | undefined
  const listen = () => {
    clearTimeout(timer)
    if (!isOver) timer = setTimeout(interrupt, silence_ms)
  }
  // Refused if the producer was faster; the tail shows what became of it.
  const interrupt = () =>
    sessions.appendBatch(session_id, [endEvent(session_id, 'interrupted')], { if_match: seq }).catch(listen)
  const on_disconnect = () => clearTimeout(timer)
  const entries = sessions.tail(session_id, { signal, on_connect: listen, on_disconnect })
  const left = chunkSkipper(skip_chunks)
  let end: StreamEnd | undefined
  try {
    // Leaving the loop ends the tail: the session stays for a while.
    for await (const item of entries) {
      clearTimeout(timer)
      seq = item.seq
      if (item.kind === 'event' && item.type === END_TYPE) end = item.data.status as StreamEnd
      const text =
        item.kind === 'event' && item.type === CHUNKS_TYPE ? String(unescapeJson(item.data).text) : ''
      const rest = left(text)
      if (rest !== '') yield rest
      if (end !== undefined) break
      listen()
    }
  } catch (error) {
    // The chat was deleted in the meantime.
    if (!isError(error, 'session_not_found')) throw error
    end = 'interrupted'
  } finally {
    isOver = true
    clearTimeout(timer)
  }
  if (end && LAST_CHUNKS[end]) yield `data: ${JSON.stringify(LAST_CHUNKS[end])}\n\ndata: [DONE]\n\n`
}

/** Leaves out the first chunks of texts that are cut anywhere. A chunk is an event with data; comments are none. */
function chunkSkipper(skip_chunks: number): (text: string) => string {
  let [to_skip, pending] = [skip_chunks, '']
  return (text) => {
    if (to_skip === 0) return text
    pending += text
    let from = 0
    for (let end = 0; to_skip > 0; from = end + 2) {
      end = pending.indexOf('\n\n', from)
      if (end === -1) break
      if (pending.startsWith('data:', from)) to_skip -= 1
    }
    pending = pending.slice(from)
    return to_skip === 0 ? pending : ''
  }
}
