import {
  type MediaFacts,
  type MessageFormat,
  mediaFacts,
  StoredRenderer,
  type StoredText,
} from '@annals/messages'
import { type ContextMessage, contextMessage, joinedMessage, type StoredSeq } from '@annals/messages/context'
import { type FitMessage, type FitOptions, FitToSend } from '@annals/messages/fit'
import { storedPartsJson, storedTokens } from './append_bodies.js'
import { type FittedList, fittedList } from './render/message_walk.js'

const lists = new Map<number, FitToSend>()
const renderers = new Map<number, StoredRenderer>()

/** Work that grows with a log. */
export const LOG_WORK = {
  messageParts: storedPartsJson,
  mediaFacts,

  /** The items that each message becomes. A conversation continues from call to call under one number. */
  renderMessages(conversation: number, format: MessageFormat, messages: StoredText[]): string[][] {
    let renderer = renderers.get(conversation)
    if (!renderer) {
      renderer = new StoredRenderer(format)
      renderers.set(conversation, renderer)
    }
    return messages.map((message) => renderer.render(message))
  },

  endConversation(conversation: number): void {
    renderers.delete(conversation)
  },

  storedTokens(
    messages: Array<{ format: MessageFormat; data: string }>,
    facts: Array<[sha256: string, facts: MediaFacts]>,
  ): number[] {
    const known = new Map(facts)
    return messages.map(({ format, data }) => storedTokens(format, data, (sha256) => known.get(sha256)))
  },

  addToList(list: number, format: MessageFormat, options: FitOptions, messages: FitMessage[]): void {
    let fit = lists.get(list)
    if (!fit) {
      fit = new FitToSend(format, options)
      lists.set(list, fit)
    }
    for (const message of messages) fit.add(message)
  },

  finishList(list: number): FittedList {
    return fittedList(lists.get(list)!)
  },

  endList(list: number): void {
    lists.delete(list)
  },

  contextMessages(messages: StoredSeq[]): ContextMessage[] {
    return messages.map(contextMessage)
  },

  joinedMessage(format: MessageFormat, parts: string[]): { blob: string; tokens: number } | undefined {
    const blob = joinedMessage(format, parts)
    return blob === undefined ? undefined : { blob, tokens: storedTokens(format, blob, () => undefined) }
  },
}

type LogWork = typeof LOG_WORK

declare module '@annals/kits/threads/work_thread.js' {
  interface ThreadWork extends LogWork {}
}
