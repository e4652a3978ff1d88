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

/** Joins the results of a window to their calls: each to the last call of its id ahead of it. Oldest result first. */
export function linkResults(messages: readonly ContextMessage[]): ResultLink[] {
  const links: ResultLink[] = []
  const calls = new Map<string, { call: number; nthCall: number; name: string }>()
  for (const [index, message] of messages.entries()) {
    for (const [nthCall, { id, name }] of message.calls.entries())
      calls.set(id, { call: index, nthCall, name })
    for (const [nth, { id, name }] of message.results.entries()) {
      const called = calls.get(id) ?? { call: -1, nthCall: -1, name: null }
      links.push({
        result: index,
        nth,
        call: called.call,
        nthCall: called.nthCall,
        name: called.name ?? name,
      })
    }
  }
  return links
}
