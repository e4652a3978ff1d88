import { createdOnFirstUse, createSession, ifFound, isError } from '@annals/adapter-kit'
import type { Annals } from '@annals/client'
import { stopRequested } from './stop_listener.js'
import { chatSession, chunksEvent, endStream, STREAM_TYPE, streamSession } from './stored_streams.js'
import { produce } from './stream_producer.js'
import { readStream } from './stream_reader.js'

const SILENCE_MS_DEFAULT = 15_000

export interface AnnalsStreamsOptions {
  annals: Annals
  chatId: string
  /** Keeps the process alive until the promise settles, such as `after` of Next.js. It rejects if nothing can be stored. */
  waitUntil?: ((produced: Promise<unknown>) => void) | undefined
  /**
   * A producer that has stored nothing for so long, while the service answered, is taken for dead; in ms, default
   * 15,000. One that lives stores something three times as often. All processes need the same.
   */
  silence_ms?: number | undefined
}

/** The streams of one chat. Readers on any node follow one, also past the death of the process that produces it. */
export class AnnalsStreams {
  readonly #options: AnnalsStreamsOptions

  constructor(options: AnnalsStreamsOptions) {
    this.#options = options
  }

  /**
   * Stores what `makeStream` returns, to its end, whoever reads it; from now on it is the chat's newest stream. If a stream
   * with this id has begun already, `makeStream` is not called. `abort` is aborted when somebody stops the stream, by
   * `stopStream` or by an `interrupt` in the inbox of the chat's session, so that the model stops as well. Returns a reader.
   *
   * It does not throw, because the SDK does not wait for it: if the service takes nothing, `waitUntil` learns why, or else
   * the process gets a warning.
   */
  async createNewResumableStream(
    streamId: string,
    makeStream: () => ReadableStream<string>,
    { abort }: { abort?: AbortController | undefined } = {},
  ): Promise<ReadableStream<string>> {
    const { annals, waitUntil, silence_ms = SILENCE_MS_DEFAULT } = this.#options
    const { use_uuid } = this.#sessionOf(streamId)
    const begun = this.#begin(streamId)
    const produced = begun.then(async (began_at) => {
      if (began_at === undefined) return
      const over = new AbortController()
      if (abort) this.#listen({ id: streamId, began_at }, abort, over.signal)
      const isWhole = produce(annals, use_uuid, makeStream(), silence_ms / 3).finally(() => over.abort())
      if (!(await isWhole)) abort?.abort()
    })
    produced.catch((error: Error) => waitUntil || process.emitWarning(error))
    waitUntil?.(produced)
    await begun.catch(() => {})
    return readStream(annals, use_uuid, silence_ms, 0)
  }

  /**
   * A stream, by default the chat's newest, from its beginning as far as it is, and then as it goes on; undefined if there
   * is none, or none any more. `skip_chunks` leaves out so many of the first chunks, for a client that has them.
   */
  async resumeExistingStream({
    streamId,
    skip_chunks = 0,
  }: {
    streamId?: string
    skip_chunks?: number
  } = {}): Promise<ReadableStream<string> | undefined> {
    const { annals, silence_ms = SILENCE_MS_DEFAULT } = this.#options
    const id = streamId ?? (await this.activeStreamId())
    if (id === undefined) return undefined
    const { use_uuid } = this.#sessionOf(id)
    const session = await ifFound(annals.sessions.get(use_uuid), undefined)
    return session && readStream(annals, use_uuid, silence_ms, skip_chunks)
  }

  /** The id of the chat's newest stream, which may have ended. */
  async activeStreamId(): Promise<string | undefined> {
    const { annals, chatId } = this.#options
    const newest = annals.sessions.latest(chatSession(chatId).use_uuid, { key: STREAM_TYPE })
    const [begun] = (await ifFound(newest.page(), { items: [] })).items
    return begun?.kind === 'event' ? String(begun.data.stream_id) : undefined
  }

  /**
   * Ends a stream, wherever it is produced. Only this one: a newer one goes on. Returns false if it has ended otherwise,
   * or there is none. The producer learns of it with its next append: within 50 ms while chunks come, otherwise within a
   * third of `silence_ms`.
   */
  async stopStream(streamId: string): Promise<boolean> {
    return endStream(this.#options.annals, this.#sessionOf(streamId).use_uuid, 'stopped')
  }

  /** Aborts when the stream is stopped through the inbox. If the service refuses this, the stream continues. */
  #listen(stream: { id: string; began_at: string }, abort: AbortController, over: AbortSignal): void {
    const { annals, chatId } = this.#options
    stopRequested(annals, chatSession(chatId).use_uuid, stream, over).then(
      (isToStop) => isToStop && abort.abort(),
      (error: Error) => process.emitWarning(error),
    )
  }

  /** Creates the stream's session, and makes it the chat's newest. Returns when, or undefined if it had begun. */
  async #begin(streamId: string): Promise<string | undefined> {
    const { annals, chatId } = this.#options
    const [chat, stream] = [chatSession(chatId), this.#sessionOf(streamId)]
    const newest = {
      kind: 'event' as const,
      type: STREAM_TYPE,
      key: STREAM_TYPE,
      data: { stream_id: streamId },
    }
    await createdOnFirstUse(annals, chat, () => createSession(annals, stream))
    try {
      const { appends } = await annals.sessions.appendToSessions([
        { session_id: stream.use_uuid, if_match: 0, entries: [chunksEvent()] },
        { session_id: chat.use_uuid, entries: [newest] },
      ])
      return appends[1]!.items[0]!.created_at
    } catch (error) {
      if (isError(error, 'seq_conflict')) return undefined
      throw error
    }
  }

  #sessionOf(streamId: string) {
    return streamSession(this.#options.chatId, streamId)
  }
}
