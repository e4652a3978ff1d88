import type { MessageFormat } from '@annals/messages'
import { isJsonObject } from '@annals/messages/json'
import { messagesIn, openAiMessage, type Said } from '@annals/otel'
import { agentMessageOf } from './agent_messages.js'
import { isEmpty, listIn, objectIn, objectsIn, textIn, without } from './json.js'
import type { JsonObject } from './records.js'

/** A message as it is stored, and what its source has besides. */
export interface OtherMessage {
  format: MessageFormat
  blob: JsonObject
  meta?: JsonObject
  at?: unknown
}

const TIMES = ['created_at', 'createdAt', 'timestamp', 'ts', 'created', 'date', 'time', 'processed_at']

/**
 * The messages that one message of any tool says: a result of a tool is one of its own. Its content is a text, or blocks
 * of any convention; the first one of several has in `meta` what the blob may not say.
 */
export function messagesOf(given: unknown, index = 0): OtherMessage[] {
  if (!isJsonObject(given)) return []
  if (Array.isArray(given.parts) && (given.kind === 'request' || given.kind === 'response'))
    return ofPydanticAi(given)
  const message = plain(given)
  const said = stepsOf(message).flatMap((step) => messagesIn([step], 'user'))
  const at = timeIn(given)
  const simple = typeof message.content === 'string' && message === given
  const rest = simple ? without(given, 'role', 'content', 'tool_calls', 'tool_call_id', ...TIMES) : given
  const times = toolTimes(given)
  return said.map((one, nth) => ({
    ...stored(named(one, `${index}_${nth}`)),
    at: times.get(one.calls[0]?.id ?? '')?.start ?? times.get(one.call_id)?.end ?? at,
    ...(nth === 0 && !isEmpty(rest) && { meta: rest }),
  }))
}

/** When the tools of a message of OpenCode ran, by the ids of their calls. */
function toolTimes({ info, parts }: JsonObject): Map<string, JsonObject> {
  const tools = isJsonObject(info) ? objectsIn(parts).filter(({ type }) => type === 'tool') : []
  return new Map(tools.map(({ callID, state }) => [String(callID), objectIn(objectIn(state).time)]))
}

/** Calls without an id get one that no other call has. */
function named(said: Said, place: string): Said {
  return {
    ...said,
    calls: said.calls.map((call, nth) => ({ ...call, id: call.id || `call_${place}_${nth}` })),
  }
}

/** What an assistant says after results of tools is a message of its own. */
function stepsOf(message: JsonObject): JsonObject[] {
  const blocks = message.parts ?? message.content
  if (!Array.isArray(blocks)) return [message]
  const steps: unknown[][] = [[]]
  let was_tool = false
  for (const block of blocks) {
    const { type } = objectIn(block)
    if (type === 'step-start' || type === 'step-finish') continue
    const is_tool = /^(tool|dynamic-tool)/.test(String(type))
    if (was_tool && !is_tool) steps.push([])
    steps.at(-1)!.push(block)
    was_tool = is_tool
  }
  const { parts: _, ...rest } = message
  return steps.map((content) => ({ ...rest, content }))
}

export function timeIn(given: JsonObject): unknown {
  const { created, completed } = objectIn(objectIn(given.info).time)
  const inner = objectIn(given.message ?? given.meta)
  const own = TIMES.map((name) => given[name] ?? inner[name]).find((one) =>
    ['string', 'number'].includes(typeof one),
  )
  return own ?? inner.sentAt ?? completed ?? created
}

/** A failed result keeps its mark, which OpenAI's messages have no place for. */
function stored(said: Said): OtherMessage {
  if (!said.is_error || said.call_id === '')
    return { format: 'openai', blob: openAiMessage(said) as JsonObject }
  const result = { type: 'tool_result', tool_use_id: said.call_id, content: said.text, is_error: true }
  return { format: 'anthropic', blob: { role: 'user', content: [result] } }
}

/** What some programs have around a message, or call differently. */
function plain(given: JsonObject): JsonObject {
  const agents = agentMessageOf(given)
  if (agents) return agents
  if (isJsonObject(given.message) && !('content' in given))
    return withStates({ role: given.role ?? given.type, ...given.message }, given.toolCallStates)
  if (isJsonObject(given.info) && Array.isArray(given.parts))
    return { role: given.info.role, content: objectsIn(given.parts).flatMap(ofOpenCode) }
  const version = objectsIn(given.versions)[Number(given.currentlySelected ?? 0)]
  if (version)
    return {
      role: version.role,
      content: version.content ?? objectsIn(version.steps).flatMap(({ content }) => listIn(content)),
    }
  if (typeof given.isCreatedByUser === 'boolean')
    return { role: given.isCreatedByUser ? 'user' : 'assistant', content: given.content ?? given.text ?? '' }
  if (given.role === undefined && typeof given.sender === 'string') return { ...given, role: given.sender }
  if (given.from === 'function_call')
    return { role: 'assistant', content: '', tool_calls: [calledIn(given.value)] }
  return given
}

/** Continue keeps the results of calls beside the message that makes them. */
function withStates(message: JsonObject, states: unknown): JsonObject {
  const ended = objectsIn(states).filter(
    ({ output, status }) => Array.isArray(output) || status === 'canceled',
  )
  if (ended.length === 0 || Array.isArray(message.content)) return message
  const calls = objectsIn(message.toolCalls ?? message.tool_calls).map((call) => ({
    ...call,
    ...objectIn(call.function),
    type: 'tool_call',
  }))
  const results = ended.map(({ toolCallId, output, status }) => ({
    type: 'tool_result',
    id: toolCallId,
    result: objectsIn(output)
      .map(({ content }) => textIn(content) ?? '')
      .join('\n'),
    ...(status !== 'done' && { status: 'error' }),
  }))
  const said = textIn(message.content) === undefined ? [] : [{ type: 'text', text: message.content }]
  const { toolCalls: _, tool_calls: __, ...rest } = message
  return { ...rest, content: [...said, ...calls, ...results] }
}

/** A call as ShareGPT has it: the JSON of one. */
function calledIn(value: unknown): JsonObject {
  try {
    return objectIn(typeof value === 'string' ? JSON.parse(value) : value)
  } catch {
    return { name: 'unknown', arguments: textIn(value) ?? '{}' }
  }
}

const SAID_BY_OPENCODE = new Set(['text', 'reasoning', 'file'])

/** A part of OpenCode, of which those of tools have a call and its result. Steps, snapshots and patches say nothing. */
function ofOpenCode(part: JsonObject): JsonObject[] {
  if (part.type !== 'tool') return SAID_BY_OPENCODE.has(part.type as string) ? [part] : []
  const { status, input, output, error, metadata } = objectIn(part.state)
  const { exit } = objectIn(metadata)
  const is_failed = status === 'error' || (typeof exit === 'number' && exit !== 0)
  const call = { type: 'tool_call', id: part.callID, name: part.tool, arguments: input ?? {} }
  if (status !== 'completed' && status !== 'error') return [call]
  return [
    call,
    {
      type: 'tool_result',
      id: part.callID,
      result: output ?? error ?? '',
      ...(is_failed && { status: 'error' }),
    },
  ]
}

/** The model that a message names. */
export function modelIn(given: JsonObject): string | undefined {
  const { model_response } = objectIn(given.tool_call_metadata)
  const holders = [given.message, given.info, given.options, model_response]
  const about = [given, ...holders.map(objectIn)]
  const names = about.flatMap(({ model, modelID, model_name, modelId, model_id }) => [
    model,
    modelID,
    model_name,
    modelId,
    model_id,
  ])
  return textIn(names.find((name) => textIn(name) !== undefined)) ?? textIn(listIn(given.models)[0])
}

/** The parts of a request or an answer of Pydantic AI, each of which may be said by somebody else. */
function ofPydanticAi(given: JsonObject): OtherMessage[] {
  const turns: JsonObject[] = []
  for (const part of objectsIn(given.parts)) {
    const { part_kind: kind, content, tool_name: name, tool_call_id: id, args, timestamp } = part
    const role = kind === 'system-prompt' ? 'system' : given.kind === 'response' ? 'assistant' : 'user'
    const blocks =
      kind === 'tool-call'
        ? [{ type: 'tool_call', id, name, arguments: args ?? {} }]
        : kind === 'tool-return' || (kind === 'retry-prompt' && id != null && name != null)
          ? [
              {
                type: 'tool_result',
                id,
                result: content ?? '',
                ...(kind === 'retry-prompt' && { status: 'error' }),
              },
            ]
          : kind === 'thinking'
            ? [{ type: 'thinking', thinking: content }]
            : listIn(typeof content === 'string' ? [{ type: 'text', text: content }] : content)
    const last = turns.at(-1)
    if (last && last.role === role) (last.content as unknown[]).push(...blocks)
    else turns.push({ role, content: [...blocks], timestamp: timestamp ?? given.timestamp })
  }
  const rest = without(given, 'parts', 'kind', 'timestamp')
  return turns.flatMap((turn, nth) =>
    messagesOf(turn).map(({ meta: _, ...one }, at) => ({
      ...one,
      ...(nth === 0 && at === 0 && !isEmpty(rest) && { meta: rest }),
    })),
  )
}
