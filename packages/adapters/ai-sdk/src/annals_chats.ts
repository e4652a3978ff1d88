import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import {
  answersTo,
  askForCalls,
  BODY_BYTES_MAX,
  createdOnFirstUse,
  createSession,
  cutIntoBatches,
  ifFound,
  isError,
  reasonOf,
} from '@annals/adapter-kit'
import type { Annals, NewEntry, RunnerRequest } from '@annals/client'
import type { UIMessage } from 'ai'
import { hasApprovals, waitingCalls, withAnswers } from './chat_approvals.js'
import { givenMessage, newEntries } from './stored_messages.js'
import { chatSession, finishStream, STREAM_TYPE } from './stored_streams.js'

/** Most entries of a page, and most that one request retracts by their ids. */
const PAGE_LIMIT = 1_000
const RETRACTED_MAX = 200
/** Room for the ids of retracted entries, in addition to the entries that replace them. */
const RETRACTED_BYTES = 10_000
/** Others who write to the chat make a save start over; each time, one of them has made progress. */
const ATTEMPTS_MAX = 50

export interface NewChat {
  /** The SDK's id for the chat; any string, by default a new one. The session's own id is made of it. */
  chatId?: string | undefined
  /** Whose chat it is: its data goes when the user is erased. */
  user?: string | undefined
  /** Configs with which the session is created, in addition to its `ai_sdk_chat`. */
  configs?: object | undefined
}

export interface SavedChat {
  chatId: string
  /** All messages of the chat. */
  messages: readonly UIMessage[]
  /** Given with the messages that the stream ended in: its session goes. */
  streamId?: string | undefined
}

/** What a chat holds, as it was read. */
interface StoredChat {
  messages: { id: string; seq: number; message: UIMessage }[]
  last_seq: number
  /** Where the log says that a stream began. */
  stream_seqs: Map<unknown, number>
}

/** Chats of the AI SDK that are kept in Annals: their messages are messages of sessions. */
export class AnnalsChats {
  readonly #annals: Annals

  constructor({ annals }: { annals: Annals }) {
    this.#annals = annals
  }

  /** Creates a chat, or leaves the one that is there as it is. Returns its id. */
  async createChat({ chatId = randomUUID(), user, configs }: NewChat = {}): Promise<string> {
    const session = chatSession(chatId)
    await createSession(this.#annals, { ...session, user, configs: { ...configs, ...session.configs } })
    return chatId
  }

  /** The id of the chat's session in Annals, whose inbox takes a stop, and whose lease keeps a second runner away. */
  sessionId(chatId: string): string {
    return chatSession(chatId).use_uuid
  }

  /** The chat's messages, in order; none of a chat that nobody has created. */
  async loadChat<Message extends UIMessage = UIMessage>(chatId: string): Promise<Message[]> {
    const { messages } = await ifFound(this.#read(chatSession(chatId).use_uuid), { messages: [] })
    return messages.map(({ message }) => message as Message)
  }

  /**
   * Makes the chat's messages these. What is stored already is not written again; what has changed or is missing is
   * retracted with what follows it, and the log keeps it. With a `streamId`, it changes nothing and returns false if
   * somebody has stored messages since the stream began that are not among these.
   */
  async saveChat({ chatId, messages, streamId }: SavedChat): Promise<boolean> {
    const session = chatSession(chatId)
    const wanted: UIMessage[] = JSON.parse(JSON.stringify(messages))
    const ids = new Set(wanted.map(({ id }) => id))
    for (let attempt = 1; ; attempt += 1) {
      const stored = await createdOnFirstUse(this.#annals, session, () => this.#read(session.use_uuid))
      const began_at = stored.stream_seqs.get(streamId) ?? Number.POSITIVE_INFINITY
      if (stored.messages.some(({ seq, message }) => seq > began_at && !ids.has(message.id))) return false
      try {
        await this.#write(session.use_uuid, stored, wanted)
        break
      } catch (error) {
        if (!isError(error, 'seq_conflict') || attempt === ATTEMPTS_MAX) throw error
      }
    }
    if (streamId !== undefined) await finishStream(this.#annals, chatId, streamId)
    return true
  }

  /**
   * Opens a request for each call of the chat's last message that a person has to approve, once, and returns them; none
   * if nothing waits. Call it when the message is saved.
   */
  async askForApprovals(chatId: string): Promise<RunnerRequest[]> {
    const calls = waitingCalls(chatId, await this.loadChat(chatId))
    return askForCalls(this.#annals, chatSession(chatId).use_uuid, calls)
  }

  /**
   * The messages to go on with, as soon as the calls of the last one are approved or denied, in this process or another;
   * undefined if the chat waits for nothing. The decisions are stored in the chat.
   * @throws the signal's reason
   */
  async resumeChat<Message extends UIMessage = UIMessage>(
    chatId: string,
    { signal }: { signal?: AbortSignal | undefined } = {},
  ): Promise<Message[] | undefined> {
    const requests = await answersTo(this.#annals, await this.askForApprovals(chatId), signal)
    const messages = await this.loadChat<Message>(chatId)
    if (!hasApprovals(messages)) return undefined
    const answered = withAnswers(chatId, messages, requests, reasonOf)
    await this.saveChat({ chatId, messages: answered })
    return answered
  }

  async #read(session_id: string): Promise<StoredChat> {
    const chat: StoredChat = { messages: [], last_seq: 0, stream_seqs: new Map() }
    for await (const item of this.#annals.sessions.timeline(session_id, { limit: PAGE_LIMIT })) {
      chat.last_seq = item.seq
      if (item.kind === 'event' && item.type === STREAM_TYPE)
        chat.stream_seqs.set(item.data.stream_id, item.seq)
      const message = await givenMessage(this.#annals, session_id, item)
      if (message) chat.messages.push({ id: item.id, seq: item.seq, message })
    }
    return chat
  }

  /** Each request holds only if nobody has written since, so that two saves at once do not mix. */
  async #write(use_uuid: string, stored: StoredChat, wanted: UIMessage[]): Promise<void> {
    const { sessions } = this.#annals
    const isKept = (message: UIMessage, at: number) =>
      isDeepStrictEqual(stored.messages[at]?.message, message)
    const changed = wanted.findIndex((message, at) => !isKept(message, at))
    const kept = changed === -1 ? wanted.length : changed
    const gone = stored.messages.slice(kept).map(({ id }) => id)
    const forms = wanted.slice(kept).map(newEntries)
    let if_match = stored.last_seq
    const append = async (batches: NewEntry[][]) => {
      for (const batch of batches)
        if_match = (await sessions.appendBatch(use_uuid, batch, { if_match })).items.at(-1)!.seq
    }
    await append(cutIntoBatches(forms.flatMap((entries) => entries.slice(0, -1))))
    const counting = forms.map((entries) => entries.at(-1)!)
    const [first, ...more] = cutIntoBatches(counting, BODY_BYTES_MAX - RETRACTED_BYTES)
    if (gone.length === 0 && first) await append([first])
    for (let from = 0; from < gone.length; from += RETRACTED_MAX) {
      const which = { ids: gone.slice(from, from + RETRACTED_MAX) }
      const replacement = from + RETRACTED_MAX >= gone.length && first ? { entries: first } : {}
      const answer = await sessions.retract(use_uuid, { ...which, ...replacement }, { if_match })
      if_match = answer.appended?.at(-1)?.seq ?? answer.retraction.seq
    }
    await append(more)
  }
}
