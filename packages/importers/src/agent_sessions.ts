import { isJsonObject } from '@annals/messages/json'
import { listIn, objectIn, objectsIn, textIn, without } from './json.js'
import type { JsonObject } from './records.js'

/** A session whose messages are in one form, each with what it was in `source`. */
export interface AgentSession {
  messages: JsonObject[]
  about: JsonObject
}

/** The session of an agent that writes messages in a form of its own: Zed, Amazon Q and Kiro, Amp, Crush. */
export function agentSessionOf(value: JsonObject): AgentSession | undefined {
  return ofZed(value) ?? ofAmazonQ(value) ?? ofAmp(value) ?? ofCrush(value)
}

function ofZed(value: JsonObject): AgentSession | undefined {
  const { messages, model, ...about } = value
  const list = objectsIn(messages)
  const is_new = list.some(({ User, Agent }) => isJsonObject(User) || isJsonObject(Agent))
  const is_old =
    !is_new && list.some(({ role, segments }) => typeof role === 'string' && Array.isArray(segments))
  if (!is_new && !is_old) return undefined
  const { model: name, provider } = objectIn(model)
  return {
    messages: listIn(messages).flatMap(is_new ? zedMessage : oldZedMessage),
    about: { ...about, title: about.title ?? about.summary, model: textIn(name), provider },
  }
}

function zedMessage(given: unknown): JsonObject[] {
  if (!isJsonObject(given)) return []
  const { User, Agent } = given
  if (isJsonObject(User))
    return [{ role: 'user', content: listIn(User.content).map(zedBlock), source: given }]
  if (!isJsonObject(Agent)) return []
  const blocks = listIn(Agent.content)
  const calls = blocks.flatMap((block) => {
    const { ToolUse } = objectIn(block)
    return isJsonObject(ToolUse)
      ? [{ id: ToolUse.id, name: ToolUse.name, arguments: ToolUse.input ?? {} }]
      : []
  })
  const said = blocks.filter((block) => !isJsonObject(objectIn(block).ToolUse)).map(zedBlock)
  const results = Object.entries(objectIn(Agent.tool_results)).map(([id, result]) => {
    const { content, output, is_error } = objectIn(result)
    const text = textIn(content) ?? textIn(objectIn(content).Text) ?? JSON.stringify(content ?? output ?? '')
    return { role: 'tool', tool_call_id: id, content: text, is_error: is_error === true }
  })
  return [{ role: 'assistant', content: said, tool_calls: calls, source: given }, ...results]
}

function zedBlock(block: unknown): JsonObject {
  const { Text, Thinking, Image, Mention } = objectIn(block)
  if (isJsonObject(Thinking)) return { type: 'thinking', thinking: Thinking.text }
  const { source } = objectIn(Image)
  if (typeof source === 'string')
    return { type: 'image_url', image_url: { url: `data:image/png;base64,${source}` } }
  const text =
    textIn(Text) ??
    textIn(objectIn(Mention).content) ??
    (typeof block === 'string' ? block : JSON.stringify(block))
  return { type: 'text', text }
}

function oldZedMessage(given: unknown): JsonObject[] {
  if (!isJsonObject(given)) return []
  const { role, segments, tool_uses, tool_results } = given
  const content = objectsIn(segments).map(({ type, text }) =>
    type === 'thinking' ? { type, thinking: text } : { type: 'text', text: textIn(text) ?? '' },
  )
  const calls = objectsIn(tool_uses).map(({ id, name, input }) => ({ id, name, arguments: input ?? {} }))
  const results = objectsIn(tool_results).map(({ tool_use_id, content: said, is_error }) => ({
    role: 'tool',
    tool_call_id: tool_use_id,
    content: textIn(said) ?? textIn(objectIn(said).Text) ?? JSON.stringify(said ?? ''),
    is_error: is_error === true,
  }))
  return [{ role: String(role).toLowerCase(), content, tool_calls: calls, source: given }, ...results]
}

/** Conversations of Amazon Q's command line, and of Kiro's: turns, of which older versions make pairs. */
function ofAmazonQ(value: JsonObject): AgentSession | undefined {
  const { history, model_info, transcript: _, ...about } = value
  const turns = listIn(history).map((turn) =>
    Array.isArray(turn) ? { user: turn[0], assistant: turn[1] } : objectIn(turn),
  )
  if (
    !turns.some(({ user }) => CONTENTS.some((name) => isJsonObject(objectIn(objectIn(user).content)[name])))
  )
    return undefined
  const model = textIn(objectIn(model_info).model_id) ?? textIn(value.model)
  return { messages: turns.flatMap(turnOfAmazonQ), about: { ...about, model } }
}

const CONTENTS = ['Prompt', 'ToolUseResults', 'CancelledToolUses']

function turnOfAmazonQ(turn: JsonObject): JsonObject[] {
  const user = objectIn(turn.user)
  const { request_start_timestamp_ms: began, stream_end_timestamp_ms: ended } = objectIn(
    turn.request_metadata,
  )
  const at = user.timestamp ?? began
  const content = objectIn(user.content)
  const asked = objectIn(content.Prompt ?? content.CancelledToolUses)
  const given = objectIn(content.ToolUseResults ?? content.CancelledToolUses)
  const results = objectsIn(given.tool_use_results).map(({ tool_use_id, content: told, status }) => ({
    role: 'tool',
    tool_call_id: tool_use_id,
    content: objectsIn(told)
      .map(({ Text, Json }) => textIn(Text) ?? JSON.stringify(Json ?? ''))
      .join('\n'),
    is_error: status === 'Error',
    timestamp: at,
  }))
  const prompt = textIn(asked.prompt)
  const said = prompt === undefined ? [] : [{ role: 'user', content: prompt, timestamp: at }]
  const { Response, ToolUse } = objectIn(turn.assistant)
  const answer = objectIn(Response ?? ToolUse)
  const calls = objectsIn(answer.tool_uses).map(({ id, name, orig_name, args, orig_args }) => ({
    id,
    name: textIn(orig_name) ?? name,
    arguments: orig_args ?? args ?? {},
  }))
  const answered = isJsonObject(Response ?? ToolUse)
    ? [
        {
          role: 'assistant',
          content: textIn(answer.content) ?? '',
          tool_calls: calls,
          timestamp: ended ?? at,
        },
      ]
    : []
  const [first, ...others]: JsonObject[] = [...results, ...said, ...answered]
  return first ? [{ ...first, source: turn }, ...others] : []
}

/** Threads of Amp: blocks like Anthropic's, with results that say how their tools ran. */
function ofAmp(value: JsonObject): AgentSession | undefined {
  const { messages, ...about } = value
  const list = objectsIn(messages)
  const is_thread = /^T-/.test(String(about.id)) && (about.v ?? about.agentMode ?? about.env) !== undefined
  const is_own = list.some(({ content }) =>
    objectsIn(content).some(({ toolUseID }) => toolUseID !== undefined),
  )
  if (list.length === 0 || !(is_thread || is_own)) return undefined
  const { model } = objectIn(list.map(({ usage }) => objectIn(usage)).find((one) => textIn(one.model)))
  return { messages: list.map(messageOfAmp), about: { ...about, model: textIn(model) } }
}

function messageOfAmp(given: JsonObject): JsonObject {
  const { role, content, meta, usage } = given
  const blocks = objectsIn(content).map((block) => {
    if (block.type !== 'tool_result' || block.toolUseID === undefined) return block
    // Plugins see the contents of a thread's `run`, besides the id.
    const { status, result, error, output } = { ...block, ...objectIn(block.run) }
    const given = objectIn(result).output ?? result ?? output ?? status
    const told = error === undefined ? given : (objectIn(error).message ?? error)
    const is_failed = status === 'error' || status === 'cancelled' || status === 'rejected-by-user'
    return {
      type: 'tool_result',
      tool_use_id: block.toolUseID,
      content: typeof told === 'string' ? told : JSON.stringify(told ?? ''),
      ...(is_failed && { is_error: true }),
    }
  })
  const at = objectIn(meta).sentAt ?? objectIn(usage).timestamp
  return {
    role,
    content: blocks.length > 0 ? blocks : content,
    ...(at !== undefined && { timestamp: at }),
    source: given,
  }
}

/** Sessions of Crush, whose parts say what they are and hold it in `data`. */
function ofCrush(value: JsonObject): AgentSession | undefined {
  const { messages, ...about } = value
  const list = objectsIn(messages)
  const is_own = list.some(({ parts }) =>
    objectsIn(parts).some(({ type, data }) => typeof type === 'string' && isJsonObject(data)),
  )
  return is_own
    ? { messages: list.map(messageOfCrush), about: { ...about, ...objectIn(about.session) } }
    : undefined
}

function messageOfCrush(given: JsonObject): JsonObject {
  const parts = objectsIn(given.parts)
  const dataOf = (type: string) =>
    parts.filter((part) => part.type === type).map(({ data }) => objectIn(data))
  const calls = dataOf('tool_call').map(({ id, name, input }) => ({ id, name, arguments: input ?? '{}' }))
  const text = dataOf('text')
    .map((data) => textIn(data.text) ?? '')
    .join('\n')
  const [result] = dataOf('tool_result')
  const thought = dataOf('reasoning')
    .map(({ thinking }) => textIn(thinking) ?? '')
    .join('\n')
  const about = without({
    model: given.model,
    timestamp: given.created_at,
    reasoning_content: textIn(thought),
  })
  return result
    ? {
        role: 'tool',
        tool_call_id: result.tool_call_id,
        content: result.content ?? '',
        is_error: result.is_error === true,
        ...about,
        source: given,
      }
    : { role: given.role, content: text, tool_calls: calls, ...about, source: given }
}
