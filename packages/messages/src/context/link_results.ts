import type { ContextMessage } from './context_message.js'

/** A result and the call that it answers, by their messages' places in the window and theirs in the messages. */
export interface ResultLink {
  result: number
  nth: number
  /** -1 where the call is not in the window. */
  call: number
  nthCall: number
  name: string | null
}

/**
 * Joins the results of a window to their calls: each to the last call of its id ahead of it, or, of one that was stored
 * before its call, to that, unless the user spoke since. Oldest result first.
 */
export function linkResults(messages: readonly ContextMessage[]): ResultLink[] {
  const links: ResultLink[] = []
  const calls = new Map<string, { call: number; nthCall: number; name: string }>()
  const early = new Map<string, ResultLink>()
  for (const [index, message] of messages.entries()) {
    if (message.speaker === 'user') early.clear()
    if (message.calls.length + message.results.length === 0) continue
    for (const [nthCall, { id, name }] of message.calls.entries()) {
      calls.set(id, { call: index, nthCall, name })
      const link = early.get(id)
      if (link) Object.assign(link, { call: index, nthCall, name })
      early.delete(id)
    }
    for (const [nth, { id, name }] of message.results.entries()) {
      const called = calls.get(id) ?? { call: -1, nthCall: -1, name: null }
      const link: ResultLink = {
        result: index,
        nth,
        call: called.call,
        nthCall: called.nthCall,
        name: called.name ?? name,
      }
      links.push(link)
      if (link.call < 0) early.set(id, link)
    }
  }
  return links
}
