import { isJsonObject } from '@annals/messages/json'
import { agentMessageOf, isOfOpenHands, managedEventOf } from '../agent_messages.js'
import { agentSessionOf } from '../agent_sessions.js'
import { type FileFacts, type Format, keyOfFile, type Parser, stemOf } from '../format.js'
import { digestOf } from '../ids.js'
import { isEmpty, objectIn, objectsIn, textIn, without } from '../json.js'
import { storeModelCall, usageIn, usedFor } from '../model_calls.js'
import { messagesOf, modelIn, timeIn } from '../other_messages.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'
import { parsed } from '../traces.js'
import { isOfOpenCodeRun, type OpenCodeAnswer, OpenCodeRun } from './opencode_run.js'

/** Members that are the messages of a conversation, in data sets, frameworks and chat programs. */
const LISTS = [
  'messages',
  'conversations',
  'conversation',
  'dialog',
  'dialogue',
  'history',
  'turns',
  'items',
  'transcript',
]
const IDS = [
  'id',
  'conversation_id',
  'conversationId',
  'conversation_hash',
  'session_id',
  'instance_id',
  'sessionId',
  'thread_id',
  'uuid',
  'key',
  'custom_id',
]
/** Shorter ones are numbers of a list. */
const ID_LENGTH_MIN = 16
const CREATED = ['created_at', 'createdAt', 'created', 'create_time', 'timestamp', 'date', 'creationDate']
const TITLES = ['title', 'name', 'summary']
/** What OpenCode calls a session before it has a title. */
const NO_TITLE = /^(?:New|Child) session - \d{4}-\d\d-\d\dT/
const RATES = ['reward', 'score', 'success', 'passed', 'outcome', 'rating']

/** Conversations whose messages have no provider's form: they become OpenAI's, and what those cannot say stays beside them. */
export const CONVERSATIONS: Format = {
  name: 'conversations',
  title: 'conversations of data sets (ShareGPT, prompt and completion), frameworks, and chat programs',
  knows: (sample) =>
    conversationIn(sample) !== undefined ||
    isMessage(sample) ||
    managedEventsIn(sample).length > 0 ||
    isOfOpenCode(sample) ||
    isOfOpenCodeRun(sample) ||
    isOfOpenHands(sample),
  open: (output, file) => new OtherConversations(output, file),
}

/** One event, or a page of them. */
function managedEventsIn(value: JsonObject): JsonObject[] {
  const all = Array.isArray(value.data) ? value.data.filter(isJsonObject) : [value]
  return all.length > 0 && all.every(managedEventOf) ? all : []
}

/** A session of OpenCode, of which a large file's head has no message. */
function isOfOpenCode({ info, messages }: JsonObject): boolean {
  return isJsonObject(info) && Array.isArray(messages) && typeof info.id === 'string'
}

/** Sessions of agents that write messages in forms of their own. */
export const AGENT_SESSIONS: Format = {
  name: 'agent-sessions',
  title: 'sessions of Zed, Amp, Crush, Amazon Q and Kiro',
  knows: (sample) => sessionIn(sample) !== undefined,
  open: (output, file) => new OtherConversations(output, file),
}

/** A row of a database that an agent keeps may have its session as text. */
function sessionIn(value: JsonObject): Conversation | undefined {
  const found = agentSessionOf(value)
  if (found || typeof value.value !== 'string') return found
  const inner = parsed(value.value)
  const session = isJsonObject(inner) ? agentSessionOf(inner) : undefined
  return session && { ...session, about: { ...without(value, 'value'), ...session.about } }
}

/** A file of OpenHands, whose folder is a session. */
const EVENT_FILE = /^event-(\d{5,9})-/

/** What agents call the file of every session, whose folder has its name. */
const COMMON_NAME = /^(?:chat_history|context|events|transcript|wire)$/

interface Conversation {
  messages: unknown[]
  about: JsonObject
}

export class OtherConversations implements Parser {
  private count = 0
  private model: string | undefined
  /** What an assistant said last. */
  private last_text: unknown
  /** Calls that may wait for a result without an id. */
  private called: string[] = []
  /** The answer of a model whose use was told last: several messages may be of one. */
  private answer: unknown
  private readonly opencode = new OpenCodeRun()
  private readonly file_key: string

  constructor(
    private readonly out: Output,
    file: FileFacts,
  ) {
    const event = EVENT_FILE.exec(stemOf(file.name))
    const folder = file.folders.at(file.folders.at(-1) === 'events' ? -2 : -1)
    const own = keyOfFile(file)
    // Their first lines may be the same in every session.
    const is_common = COMMON_NAME.test(stemOf(file.name)) && folder !== undefined
    this.file_key = event && folder !== undefined ? folder : is_common ? `${folder} ${own}` : own
    // The files of a folder are one session, and name their entries by their numbers.
    if (event) this.count = Number(event[1])
  }

  read(value: unknown): void {
    if (Array.isArray(value)) this.store({ messages: value, about: {} })
    if (!isJsonObject(value)) return
    if (isOfOpenCodeRun(value)) {
      this.out.accept()
      this.answers(this.opencode.read(value))
      return
    }
    const events = managedEventsIn(value)
    const found = events.length === 0 ? conversationIn(value) : undefined
    if (found) this.store(found)
    else if (events.length > 0) for (const event of events) this.event(event)
    else if (isMessage(value)) this.message(this.file_key, value, this.count++)
    else this.line(value)
  }

  end(): void {
    this.answers(this.opencode.end())
  }

  private answers(all: OpenCodeAnswer[]): void {
    for (const { session, message } of all) {
      this.out.session(session, { configs: { agent: 'opencode' } })
      this.message(session, message, this.count++)
    }
  }

  /** An event of Claude's managed agents. */
  private event(line: JsonObject): void {
    if (isMessage(line)) {
      this.message(this.file_key, line, this.count++)
      return
    }
    const { id, type, model_usage, is_error, result, explanation, agent_name } = managedEventOf(line) ?? {}
    if (textIn(agent_name)) this.out.session(this.file_key, { configs: { agent: agent_name } })
    const facts = { native: String(id), at: timeIn(line) }
    const usage = usageIn(objectIn(model_usage))
    if (usage) storeModelCall(this.out, this.file_key, { usage }, { ...facts, output: 0, last_id: undefined })
    if (type === 'span.outcome_evaluation_end')
      this.out.outcome(this.file_key, without({ outcome: result, explanation }), facts)
    else if (!usage) this.out.raw(this.file_key, String(type), line, { ...facts, noise: is_error !== true })
  }

  /** A line that says nothing itself, such as the first one of a session. */
  private line(value: JsonObject): void {
    const { data, type } = value
    const about = { ...value, ...objectIn(data), ...objectIn(objectIn(data).context) }
    const { cwd, working_dir, title, description, model, modelId, newModel, branch: git_branch } = about
    const configs = {
      cwd: cwd ?? working_dir,
      title: textIn(title) ?? textIn(description),
      model: modelId ?? newModel ?? model,
      git_branch,
    }
    const known = Object.fromEntries(Object.entries(configs).filter(([, text]) => typeof text === 'string'))
    if (!isEmpty(known)) this.out.session(this.file_key, { configs: known })
    this.model = textIn(known.model) ?? this.model
    if (typeof value.finalText === 'string') this.completion(value, value.finalText)
    const kind = textIn(type) ?? textIn(value.role) ?? textIn(value.kind) ?? textIn(value.action) ?? 'line'
    this.out.raw(this.file_key, kind, value, { at: timeIn(value), noise: true })
  }

  /** The end of a run of Droid: its answer, which may have been said before, and what it used. */
  private completion(line: JsonObject, content: string): void {
    const index = this.count++
    if (content !== '' && content !== this.last_text) {
      const message = { role: 'assistant', content, timestamp: line.timestamp, usage: line.usage }
      this.message(this.file_key, message, index)
      return
    }
    const used = usedFor(line)
    const facts = { native: `usage of ${index}`, at: timeIn(line), output: 0, last_id: undefined }
    if (used) storeModelCall(this.out, this.file_key, { ...used, model: this.model }, facts)
  }

  private store({ messages, about }: Conversation): void {
    this.count += 1
    const first = (names: readonly string[]) =>
      names.map((name) => about[name]).find((one) => one != null && one !== '')
    const id = first(IDS)
    const named = typeof id === 'string' || typeof id === 'number'
    // Every data set may have a `1`.
    const own = String(id).length < ID_LENGTH_MIN ? `${id} ${digestOf(messages[0])}` : String(id)
    const key = named ? own : `${this.count} ${digestOf([about, messages.slice(0, 3)])}`
    const at = first(CREATED)
    const title = textIn(first(TITLES))
    const configs = {
      title: title !== undefined && NO_TITLE.test(title) ? undefined : title,
      model: modelIn(about),
      cwd: textIn(about.directory),
    }
    this.model = configs.model
    this.called = []
    this.out.session(key, { user: about.user ?? about.user_id, configs, changed_at: about.updated_at ?? at })
    for (const [index, message] of messages.entries()) this.message(key, message, index, at)
    const rest = without(about, ...TITLES, 'model', ...RATES)
    const changed_at = about.updated_at ?? objectIn(about.time).updated ?? at
    if (!isEmpty(rest)) this.out.raw(key, 'run', rest, { native: 'run', at: changed_at, noise: true })
    const rated = RATES.filter((name) => about[name] != null)
    if (rated.length > 0) this.out.outcome(key, Object.fromEntries(rated.map((name) => [name, about[name]])))
    this.out.end(key)
  }

  private message(key: string, message: unknown, index: number, otherwise?: unknown): void {
    const model = modelIn(objectIn(message))
    if (model !== undefined && model !== this.model) this.out.session(key, { configs: { model } })
    this.model = model ?? this.model
    const said = messagesOf(message, index)
    const ids: string[] = []
    for (const [nth, { format, blob, meta, at }] of said.entries()) {
      for (const { id } of objectsIn(blob.tool_calls)) this.called.push(String(id))
      // A result without an id answers the oldest call that nothing answers.
      const answered = blob.tool_call_id === 'unknown' ? this.called.shift() : undefined
      const whole = answered === undefined ? blob : { ...blob, tool_call_id: answered }
      const id = this.out.message(key, format, whole, {
        native: nth === 0 ? index : `${index}/${nth}`,
        at: at ?? otherwise,
        ...(nth === 0 && meta && { meta: { original: meta } }),
      })
      if (blob.role === 'assistant') this.last_text = blob.content ?? this.last_text
      if (id !== undefined && blob.role === 'assistant') ids.push(id)
    }
    if (ids.length > 0) this.used(key, objectIn(message), index, said[0]?.at ?? otherwise, ids)
    if (said.length === 0)
      this.out.raw(key, 'message', message, { native: index, at: timeIn(objectIn(message)) ?? otherwise })
  }
  /** Tells what the call used that made these messages. */
  private used(key: string, message: JsonObject, index: number, at: unknown, ids: string[]): void {
    const used = usedFor(message)
    const { id: answer } = objectIn(objectIn(message.tool_call_metadata).model_response)
    if (!used || (answer !== undefined && answer === this.answer)) return
    this.answer = answer
    const facts = { native: `usage of ${index}`, at, output: ids.length, last_id: ids.at(-1) }
    storeModelCall(this.out, key, { ...used, model: this.model }, facts)
  }
}

/** The conversation that an object is, whatever its members are called. */
function conversationIn(value: JsonObject): Conversation | undefined {
  const session = sessionIn(value)
  if (session) return session
  for (const inner of ['chat', 'thread', 'data']) {
    const found = isJsonObject(value[inner]) ? conversationIn(value[inner]) : undefined
    if (found) return { ...found, about: { ...found.about, ...without(value, inner) } }
  }
  for (const name of LISTS) {
    const list = value[name]
    if (Array.isArray(list) && list.length > 0 && list.every(isMessage))
      return {
        messages: [...systemOf(value.system), ...list],
        about: { ...without(value, name, 'info', ...ifSaid(value.system)), ...objectIn(value.info) },
      }
  }
  return preferred(value) ?? completed(value)
}

function systemOf(system: unknown): JsonObject[] {
  const content = objectsIn(system).length > 0 ? objectsIn(system) : textIn(system)
  return content === undefined ? [] : [{ role: 'system', content }]
}

function ifSaid(system: unknown): string[] {
  return systemOf(system).length > 0 ? ['system'] : []
}

/** Of two answers the one that is preferred was said; the other stays beside the conversation. */
function preferred(value: JsonObject): Conversation | undefined {
  const { prompt, chosen } = value
  if (chosen === undefined || value.rejected === undefined) return undefined
  const asked = saidBy('user', prompt)
  const answered = saidBy('assistant', chosen)
  if (!asked || !answered || answered.length === 0) return undefined
  return { messages: [...asked, ...answered], about: without(value, 'prompt', 'chosen') }
}

/** A question and its answer, as files for training have them. */
function completed(value: JsonObject): Conversation | undefined {
  const { prompt, completion, instruction, input, output, question, answer, response } = value
  const asked = saidBy(
    'user',
    prompt ??
      question ??
      (instruction === undefined ? undefined : [instruction, input].filter(textIn).join('\n\n')),
  )
  const told = completion ?? (instruction === undefined ? (answer ?? response) : (output ?? response))
  const answered = saidBy('assistant', told)
  if (!asked?.length || !answered?.length) return undefined
  const names = [
    'prompt',
    'completion',
    'instruction',
    'question',
    'answer',
    'response',
    ...(instruction === undefined ? [] : ['input', 'output']),
  ]
  return {
    messages: [...systemOf(value.system), ...asked, ...answered],
    about: without(value, ...names, ...ifSaid(value.system)),
  }
}

/** A text, or messages; undefined for anything else. */
function saidBy(role: string, value: unknown): unknown[] | undefined {
  if (value === undefined) return []
  if (typeof value === 'string') return [{ role, content: value }]
  return Array.isArray(value) && value.every(isMessage) ? value : undefined
}

const SPEAKERS = new Set([
  'system',
  'developer',
  'user',
  'human',
  'assistant',
  'ai',
  'gpt',
  'chatgpt',
  'bot',
  'model',
  'agent',
  'tool',
  'function',
  'observation',
  'function_call',
  'toolresult',
  'aimessagechunk',
])

/** Whether an object says who says what. */
function isMessage(value: unknown): boolean {
  if (!isJsonObject(value)) return false
  if (agentMessageOf(value)) return true
  if (value.kind === 'request' || value.kind === 'response') return Array.isArray(value.parts)
  if (isJsonObject(value.kwargs) && Array.isArray(value.id)) return true
  if (isJsonObject(value.message) && isMessage(value.message)) return true
  if (isJsonObject(value.info) && Array.isArray(value.parts)) return typeof value.info.role === 'string'
  if (Array.isArray(value.versions))
    return objectsIn(value.versions).some((one) => typeof one.role === 'string')
  const { role, from, sender, type, isCreatedByUser } = value
  if (typeof isCreatedByUser === 'boolean') return true
  const speaker = [role, from, sender, type].find((one) => typeof one === 'string')
  const has_content = ['content', 'value', 'parts', 'text', 'data', 'tool_calls', 'function_call'].some(
    (name) => name in value,
  )
  return (has_content || isJsonObject(value.message)) && SPEAKERS.has(String(speaker).toLowerCase())
}
