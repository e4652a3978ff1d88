import { stableId, type WaitingCall } from '@annals/adapter-kit'
import { writeJson } from '@annals/messages/json'
import type { Agent, RunState } from '@openai/agents-core'

/**
 * A run that waits for approvals is its newest event of this type: `state` is the text of the SDK's `RunState`, or null
 * when nothing waits any more. The requests' ids are made of the event's id, so that whoever resumes the run asks for
 * the same requests, and a later wait for the same call asks anew.
 */
export const RUN_TYPE = 'openai_agents.run'
export const RUN_KEY = 'openai_agents.run'

// biome-ignore lint/suspicious/noExplicitAny: the SDK's own bound for an agent, whatever its context and output
export type AnyAgent = Agent<any, any>
// biome-ignore lint/suspicious/noExplicitAny: a run of any agent in any context
export type AnyRun = RunState<any, AnyAgent>
type Interruption = ReturnType<AnyRun['getInterruptions']>[number]

export function callIdOf({ rawItem }: Interruption): string | undefined {
  const { callId, id } = rawItem as { callId?: string; id?: string }
  return callId || id
}

/** The calls of a run that need an approval, in the order of its interruptions. */
export function waitingCalls(id: string, state: AnyRun): WaitingCall[] {
  return state.getInterruptions().map((interruption, at) => {
    const { rawItem, agent } = interruption
    const { type, action, operation } = rawItem as { type: string; action?: unknown; operation?: unknown }
    return {
      id: stableId('openai-agents', 'approval', id, `${at}`),
      name: interruption.name ?? type,
      // Calls of a shell or a patch have something else in the place of arguments.
      arguments: interruption.arguments ?? writeJson(action ?? operation ?? {}),
      text: `Call ${callIdOf(interruption) ?? at + 1} of ${agent.name}`,
    }
  })
}
