import { isJsonObject } from '@annals/messages/json'
import { objectIn, objectsIn, textIn } from './json.js'
import type { JsonObject } from './records.js'

/**
 * The message that a line of a coding agent says, as its content and calls: of OpenHands, before and since its version 1,
 * of GitHub Copilot's command line, of Claude's managed agents, and of those that write calls and results as lines of their
 * own, such as Droid and Grok Build. Undefined for what says none.
 */
export function agentMessageOf(line: JsonObject): JsonObject | undefined {
  return (
    ofManagedAgent(line) ?? ofCopilot(line) ?? ofOpenHandsEvent(line) ?? ofOpenHands(line) ?? ofToolLine(line)
  )
}

function ofToolLine(line: JsonObject): JsonObject | undefined {
  const { type, role, summary } = line
  const id = textIn(line.toolCallId) ?? textIn(line.tool_call_id)
  const own_id = id ?? textIn(line.id)
  const name = textIn(line.toolName) ?? textIn(line.name) ?? textIn(line.toolId)
  if (type === 'tool_call' && name !== undefined && own_id !== undefined) {
    const given = line.arguments ?? line.parameters ?? line.params ?? line.args ?? line.input
    return { role: 'assistant', content: '', tool_calls: [{ id: own_id, name, arguments: given ?? {} }] }
  }
  if (type === 'tool_result' && (id ?? (name && own_id)) !== undefined) {
    const told = line.content ?? line.value ?? line.output ?? line.result ?? ''
    const is_error = (line.isError ?? line.is_error) === true
    const content = typeof told === 'string' || Array.isArray(told) ? told : JSON.stringify(told)
    return { role: 'tool', tool_call_id: own_id, content, is_error }
  }
  if (type !== 'reasoning' || role !== undefined || typeof line.id !== 'string') return undefined
  const thoughts = [line, ...objectsIn(summary)].flatMap(({ text }) => textIn(text) ?? [])
  return thoughts.length > 0
    ? { role: 'assistant', content: '', reasoning_content: thoughts.join('\n\n') }
    : undefined
}

/** An event of a session of Claude's managed agents, or in the `raw` of a line made from it. */
export function managedEventOf(line: JsonObject): JsonObject | undefined {
  const event = isJsonObject(line.raw) ? line.raw : line
  const is_event = /^(?:agent|user|session|span)\.[a-z_]+$/.test(String(event.type))
  return is_event && 'processed_at' in event ? event : undefined
}

function ofManagedAgent(line: JsonObject): JsonObject | undefined {
  const event = managedEventOf(line)
  if (!event) return undefined
  const { id, type, content, name, input, is_error } = event
  const [speaker, what = ''] = String(type).split('.')
  if (what === 'message') return { role: speaker === 'user' ? 'user' : 'assistant', content: content ?? '' }
  if (what === 'define_outcome') return { role: 'user', content: event.description ?? '' }
  if (what.endsWith('tool_use'))
    return { role: 'assistant', content: '', tool_calls: [{ id, name, arguments: input ?? {} }] }
  if (!what.endsWith('tool_result')) return undefined
  const called = event.tool_use_id ?? event.mcp_tool_use_id ?? event.custom_tool_use_id
  return { role: 'tool', tool_call_id: called, content: content ?? '', is_error: is_error === true }
}

function ofCopilot({ type, data }: JsonObject): JsonObject | undefined {
  if (!isJsonObject(data) || typeof type !== 'string') return undefined
  const { content, toolRequests, toolCallId, success, result, error } = data
  const speaker = /^(user|assistant|system)\.message$/.exec(type)?.[1]
  if (speaker !== undefined) {
    const calls = objectsIn(toolRequests).map(({ toolCallId: id, name, arguments: given }) => ({
      id,
      name,
      arguments: given,
    }))
    return { role: speaker, content: content ?? '', tool_calls: calls }
  }
  if (type !== 'tool.execution_complete') return undefined
  const said = objectIn(result).content ?? objectIn(error).message ?? ''
  return { role: 'tool', tool_call_id: toolCallId, content: said, is_error: success === false }
}

/** OpenHands since version 1: what an event is stands in `kind`. */
function ofOpenHandsEvent(event: JsonObject): JsonObject | undefined {
  const {
    kind,
    tool_call_id: id,
    tool_name: name,
    tool_call,
    thought,
    llm_message,
    observation,
    error,
  } = event
  if (kind === 'MessageEvent' && isJsonObject(llm_message)) return llm_message
  if (kind === 'SystemPromptEvent') return { role: 'system', content: [objectIn(event.system_prompt)] }
  if (kind === 'ActionEvent') {
    const { arguments: given } = objectIn(tool_call)
    const calls = id == null ? [] : [{ id, name, arguments: given ?? event.action ?? {} }]
    return {
      role: 'assistant',
      content: objectsIn(thought),
      reasoning_content: event.reasoning_content,
      tool_calls: calls,
    }
  }
  if (kind === 'AgentErrorEvent')
    return { role: 'tool', tool_call_id: id, content: error ?? '', is_error: true }
  if (kind !== 'ObservationEvent' || id == null) return undefined
  const { content, is_error } = objectIn(observation)
  return { role: 'tool', tool_call_id: id, content: content ?? JSON.stringify(observation), is_error }
}

/** What OpenHands itself does with what was said, or tells of it. */
const NOT_CALLED = new Set(['condensation', 'condensation_request', 'change_agent_state', 'recall', 'null'])
const NOT_OF_TOOLS = new Set(['recall', 'null', 'agent_state_changed'])

/** An event of OpenHands since version 1, of which each is a file: `event-00012-<id>.json`. */
export function isOfOpenHands({ kind, id, timestamp, source }: JsonObject): boolean {
  const is_named = typeof id === 'string' && typeof timestamp === 'string' && typeof source === 'string'
  return is_named && typeof kind === 'string' && (kind.endsWith('Event') || kind.startsWith('Condensation'))
}

/** OpenHands before: actions and observations, which name the actions that caused them. */
function ofOpenHands(event: JsonObject): JsonObject | undefined {
  const { source, action, observation, args, cause, content, message } = event
  if (typeof source !== 'string') return undefined
  const { tool_call_id, function_name, model_response } = objectIn(event.tool_call_metadata)
  if (typeof observation === 'string') {
    if ((cause == null && tool_call_id == null) || NOT_OF_TOOLS.has(observation)) return undefined
    const is_error = event.success === false || observation === 'error'
    return {
      role: 'tool',
      tool_call_id: tool_call_id ?? `call_${cause}`,
      content: content ?? message ?? '',
      is_error,
    }
  }
  if (typeof action !== 'string') return undefined
  const given = objectIn(args)
  if (action === 'system') return { role: 'system', content: given.content ?? '' }
  if (action === 'message' || action === 'finish')
    return {
      role: source === 'user' ? 'user' : 'assistant',
      content: given.content ?? given.final_thought ?? message ?? '',
    }
  if (source !== 'agent' || NOT_CALLED.has(action)) return undefined
  const [choice] = objectsIn(objectIn(model_response).choices)
  const thought = textIn(objectIn(choice?.message).content) ?? textIn(given.thought) ?? ''
  const own = objectsIn(objectIn(choice?.message).tool_calls).find(({ id }) => id === tool_call_id)
  const call = own ?? {
    id: tool_call_id ?? `call_${event.id}`,
    name: function_name ?? action,
    arguments: given,
  }
  return { role: 'assistant', content: thought, tool_calls: [call] }
}
