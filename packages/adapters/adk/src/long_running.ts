import { reasonOf, stableId, type WaitingCall } from '@annals/adapter-kit'
import type { RunnerRequest } from '@annals/client'
import { type Event, REQUEST_CONFIRMATION_FUNCTION_CALL_NAME } from '@google/adk'

type Content = NonNullable<Event['content']>
type FunctionCall = NonNullable<NonNullable<Content['parts']>[number]['functionCall']>

/** A call of a long-running tool, or one that needs a confirmation, and what a person is asked. */
export interface LongRunningCall {
  call: FunctionCall
  asked: WaitingCall
}

/**
 * The calls of a session that nobody has answered. An answer is a function response of the user; one that nothing
 * follows was stored by a process that was killed then, and is given again.
 */
export function unanswered(session_id: string, events: readonly Event[]): LongRunningCall[] {
  const answered = new Set<string | undefined>()
  for (const { author, content } of events.slice(0, -1))
    if (author === 'user') for (const part of content?.parts ?? []) answered.add(part.functionResponse?.id)
  return events.flatMap(({ id: event_id, author, longRunningToolIds = [], content }) =>
    (content?.parts ?? []).flatMap(({ functionCall: call }) => {
      const { id, name = '' } = call ?? {}
      const waits = id !== undefined && longRunningToolIds.includes(id) && !answered.has(id)
      // What it asks for is a credential or a text, and no approval.
      const isOther = name.startsWith('adk_request_') && name !== REQUEST_CONFIRMATION_FUNCTION_CALL_NAME
      return waits && !isOther ? [{ call: call!, asked: askedOf(session_id, event_id, author, call!) }] : []
    }),
  )
}

function askedOf(
  session_id: string,
  event_id: string,
  author: string | undefined,
  call: FunctionCall,
): WaitingCall {
  const isConfirmation = call.name === REQUEST_CONFIRMATION_FUNCTION_CALL_NAME
  const { originalFunctionCall, toolConfirmation } = (call.args ?? {}) as {
    originalFunctionCall?: FunctionCall
    toolConfirmation?: { hint?: string }
  }
  const shown = (isConfirmation && originalFunctionCall) || call
  const hint = isConfirmation ? toolConfirmation?.hint : undefined
  return {
    id: stableId('adk', 'approval', session_id, event_id, call.id!),
    name: shown.name ?? '',
    arguments: JSON.stringify(shown.args ?? {}),
    text: [`Call ${shown.id ?? call.id} of ${author ?? 'an agent'}`, hint].filter(Boolean).join(': '),
  }
}

/** The message that tells the agent what was decided. */
export function answerTo(calls: readonly LongRunningCall[], requests: readonly RunnerRequest[]): Content {
  const parts = calls.map(({ call: { id, name } }, at) => {
    const request = requests[at]!
    const confirmed = request.decision === 'approve'
    const response =
      name === REQUEST_CONFIRMATION_FUNCTION_CALL_NAME
        ? { confirmed }
        : confirmed
          ? { status: 'approved', ...(request.by !== undefined && { by: request.by }) }
          : { status: 'denied', reason: reasonOf(request) }
    return { functionResponse: { id: id!, name: name!, response } }
  })
  return { role: 'user', parts }
}
