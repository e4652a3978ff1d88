import { stableId, type WaitingCall } from '@annals/adapter-kit'
import type { RunnerRequest } from '@annals/client'
import type { UIMessage } from 'ai'

/** A part of a message that is a tool's call; one that waits has an `approval`. */
interface ToolPart {
  type: string
  state?: string
  toolCallId: string
  toolName?: string
  input?: unknown
  approval?: { id: string; isAutomatic?: boolean; requestReason?: string }
}

/** Whether the chat's last message has calls that were approved or denied, or wait for that, and did not run. */
export function hasApprovals(messages: readonly UIMessage[]): boolean {
  return toolParts(messages).some(({ state }) => state?.startsWith('approval-'))
}

/** The calls of the chat's last message that a person has to approve. */
export function waitingCalls(chatId: string, messages: readonly UIMessage[]): WaitingCall[] {
  return toolParts(messages)
    .filter(isWaiting)
    .map(({ type, toolName, toolCallId, input, approval }) => ({
      id: requestId(chatId, approval!.id),
      name: toolName ?? type.slice('tool-'.length),
      arguments: JSON.stringify(input) ?? 'null',
      text: [`Call ${toolCallId}`, approval!.requestReason].filter(Boolean).join(': '),
    }))
}

/** The messages with what was decided. */
export function withAnswers<Message extends UIMessage>(
  chatId: string,
  messages: readonly Message[],
  requests: readonly RunnerRequest[],
  reasonOf: (request: RunnerRequest) => string,
): Message[] {
  const byId = new Map(requests.map((request) => [request.id, request]))
  const last = messages.at(-1)!
  const parts = last.parts.map((part) => {
    const tool = part as ToolPart
    const request = isWaiting(tool) ? byId.get(requestId(chatId, tool.approval!.id)) : undefined
    if (request === undefined || request.state === 'open') return part
    const approved = request.decision === 'approve'
    const approval = { ...tool.approval!, approved, ...(!approved && { reason: reasonOf(request) }) }
    return { ...tool, state: 'approval-responded', approval }
  })
  return [...messages.slice(0, -1), { ...last, parts } as Message]
}

function toolParts(messages: readonly UIMessage[]): ToolPart[] {
  const last = messages.at(-1)
  return last?.role === 'assistant' ? (last.parts as ToolPart[]).filter(isTool) : []
}

function isTool(part: ToolPart): boolean {
  return part.type === 'dynamic-tool' || part.type.startsWith('tool-')
}

function isWaiting(part: ToolPart): boolean {
  return isTool(part) && part.state === 'approval-requested' && part.approval?.isAutomatic !== true
}

function requestId(chatId: string, approval_id: string): string {
  return stableId('ai-sdk', 'approval', chatId, approval_id)
}
