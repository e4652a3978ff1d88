import { isJsonObject, writeJson } from '@annals/messages/json'
import { type FileFacts, type Format, type Parser, stemOf } from '../format.js'
import { digestOf } from '../ids.js'
import { objectIn, objectsIn, textIn } from '../json.js'
import type { EntryFacts, Output } from '../output.js'
import type { JsonObject, SummaryMessage } from '../records.js'
import { CodexUsage } from './codex_usage.js'

const LINE_TYPES = new Set(['session_meta', 'response_item', 'event_msg', 'turn_context', 'compacted'])
/** Events that repeat what an item of the conversation says, or are signs of life. */
const NOISE = new Set([
  'user_message',
  'agent_message',
  'agent_reasoning',
  'agent_reasoning_raw_content',
  'agent_reasoning_section_break',
  'token_count',
  'task_started',
  'turn_started',
  'exec_command_begin',
  'exec_command_output_delta',
  'mcp_tool_call_begin',
  'patch_apply_begin',
  'web_search_begin',
  'background_event',
  'turn_diff',
  'plan_delta',
])
/** Items that are about the files of the user, and not said to anybody. */
const NOT_SAID = new Set(['ghost_snapshot', 'other'])

const TITLE_LENGTH_MAX = 120

export const CODEX: Format = {
  name: 'codex',
  title: "Codex's rollouts",
  shape: 'lines',
  knows: (sample) =>
    (LINE_TYPES.has(sample.type as string) && isJsonObject(sample.payload)) ||
    (sample.type === 'thread.started' && typeof sample.thread_id === 'string') ||
    isOldHeader(sample) ||
    sample.record_type === 'state',
  open: (output, file) => new CodexParser(output, file),
}

class CodexParser implements Parser {
  private key: string
  private model: unknown
  /** When a rollout of 2025 began, whose items say no times. */
  private started: unknown
  private is_titled = false
  /** The messages of each turn of the user, for those that are rolled back. */
  private turns: string[][] = [[]]
  private runs = 0
  private readonly usage = new CodexUsage()
  /** What the model said since it was told what it used. */
  private said = { count: 0, last_id: '' }

  constructor(
    private readonly out: Output,
    { name }: FileFacts,
  ) {
    // `rollout-2026-11-26T10-00-00-<id>`
    this.key = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.exec(stemOf(name))?.[0] ?? stemOf(name)
  }

  read(line: unknown): void {
    if (!isJsonObject(line)) return
    // Rollouts of 2025 had items as lines, without anything around them.
    if (!isJsonObject(line.payload)) this.readBare(line)
    else this.readLine(line, line.payload)
  }

  private readLine(line: JsonObject, payload: JsonObject): void {
    const { timestamp: at, type: _, payload: __, ...others } = line
    const facts: EntryFacts = { at, ...(Object.keys(others).length > 0 && { meta: { codex: others } }) }
    if (line.type === 'session_meta') this.readMeta(line, payload)
    else if (line.type === 'response_item') this.readItem(payload, facts, line)
    else if (line.type === 'turn_context') {
      if (typeof payload.model === 'string' && payload.model !== this.model) {
        this.model = payload.model
        this.out.session(this.key, { configs: { model: payload.model } })
      }
      this.out.raw(this.key, 'turn_context', line, { ...facts, noise: true })
    } else if (line.type === 'event_msg' && payload.type === 'mcp_tool_call_end')
      // It alone says whether a tool of MCP failed, so readers look for it.
      this.out.event(this.key, 'mcp_tool_call_end', { ...others, ...payload }, facts)
    else {
      const kind = line.type === 'event_msg' ? String(payload.type) : String(line.type)
      if (kind === 'user_message') this.nameAfter(payload.message)
      const id = this.out.raw(this.key, kind, line, { ...facts, noise: NOISE.has(kind) })
      const info = objectIn(payload.info)
      if (kind === 'token_count') this.used(line, at, info.total_token_usage, info.last_token_usage)
      if (line.type === 'compacted') this.out.compact(this.key, id, summaryOf(payload))
      if (kind === 'thread_rolled_back') this.rollBack(Number(payload.num_turns))
      if (kind === 'thread_name_updated') {
        this.is_titled = true
        this.out.session(this.key, { configs: { title: payload.thread_name } })
      }
    }
  }

  /** The first items of the role user are instructions and an environment. This is what somebody typed. */
  private nameAfter(message: unknown): void {
    if (this.is_titled || typeof message !== 'string' || message.trim() === '') return
    this.is_titled = true
    const title = message
      .slice(0, 4 * TITLE_LENGTH_MAX)
      .replaceAll(/\s+/g, ' ')
      .trim()
    this.out.session(this.key, { configs: { title: title.slice(0, TITLE_LENGTH_MAX) } })
  }

  private rollBack(count: number): void {
    const left = count > 0 ? this.turns.splice(Math.max(1, this.turns.length - count)) : []
    this.out.retract(this.key, left.flat())
  }

  private readMeta(line: JsonObject, meta: JsonObject): void {
    const is_first = !this.out.isOpen(this.key)
    const { id, cwd, git, originator, cli_version: version, model_provider, source } = meta
    const { subagent } = objectIn(source)
    // The meta of the session that a resumed one was made of may follow its own.
    if (typeof id === 'string' && is_first) this.key = id
    if (is_first) {
      const git_branch = isJsonObject(git) ? git.branch : undefined
      const parent = parentOf(source) ?? textIn(meta.parent_thread_id)
      if (parent !== undefined) this.out.mention(parent, { agent: 'codex' })
      const { other, thread_spawn } = objectIn(subagent)
      const kind = textIn(subagent) ?? textIn(other) ?? textIn(objectIn(thread_spawn).agent_role)
      const configs = { agent: 'codex', cwd, git_branch, version, originator, model_provider, subagent: kind }
      this.out.session(this.key, { parent, configs })
    }
    this.out.raw(this.key, 'session_meta', line, { at: line.timestamp, noise: true })
  }

  private readItem(item: JsonObject, facts: EntryFacts, line: JsonObject): void {
    const type = String(item.type)
    if (NOT_SAID.has(type)) this.out.raw(this.key, type, line, { ...facts, noise: true })
    else {
      if (isTurn(item)) {
        this.turns.push([])
        if (this.turns.length > TURNS_MAX) this.turns.splice(1, 1)
      }
      const id = this.out.message(this.key, 'responses', item, facts)
      if (id === undefined) return
      this.turns.at(-1)!.push(id)
      if (isSaid(item)) this.said = { count: this.said.count + 1, last_id: id }
    }
  }

  /** A call of the model, as what was used tells of it. */
  private used(line: JsonObject, at: unknown, total: unknown, last?: unknown): void {
    const usage = this.usage.since(total, last)
    if (usage === undefined) return
    const { count: output, last_id } = this.said
    this.said = { count: 0, last_id: '' }
    const model = typeof this.model === 'string' ? { model: this.model } : {}
    const messages = output > 0 ? { messages: { output, last_id } } : {}
    const data = { operation: 'model', name: 'token_count', ...model, usage, ...messages }
    this.out.event(this.key, 'otel.span', data, { native: `usage of ${digestOf(line)}`, at })
  }

  /** What `codex exec --json` writes: items that have ended are what was said and done. */
  private readStreamed(line: JsonObject): void {
    const item = objectIn(line.item)
    // Each run of the command counts its items anew.
    if (line.type === 'turn.started') this.runs += 1
    const place = `${this.runs}/${item.id}`
    const said = line.type === 'item.completed' ? itemsOf(item, place) : []
    for (const [nth, one] of said.entries()) {
      const facts = { native: `${place}/${nth}`, meta: { codex: { item } } }
      const id = this.out.message(this.key, 'responses', one, facts)
      if (id !== undefined && isSaid(one)) this.said = { count: this.said.count + 1, last_id: id }
    }
    if (said.length > 0) return
    const noise = line.type === 'item.started' || line.type === 'item.updated' || line.type === 'turn.started'
    this.out.raw(this.key, String(line.type), line, { noise })
    if (line.type === 'turn.completed') this.used({ ...line, run: this.runs }, undefined, line.usage)
  }

  private readBare(line: JsonObject): void {
    if (isOldHeader(line)) {
      const { id, timestamp, git } = line
      this.key = String(id)
      this.started = timestamp
      const git_branch = isJsonObject(git) ? git.branch : undefined
      this.out.session(this.key, { configs: { agent: 'codex', git_branch } })
      this.out.raw(this.key, 'session_meta', line, { at: timestamp, noise: true })
    } else if (line.type === 'thread.started') {
      this.key = String(line.thread_id)
      this.out.session(this.key, { configs: { agent: 'codex' } })
    } else if (/^(?:thread|turn|item)\.|^error$/.test(String(line.type))) this.readStreamed(line)
    else if (line.record_type !== undefined)
      this.out.raw(this.key, String(line.record_type), line, { at: this.started, noise: true })
    else if (typeof line.type === 'string' && !LINE_TYPES.has(line.type))
      this.readItem(line, { at: line.timestamp ?? this.started }, line)
  }
}

const TURNS_MAX = 1_000

/** Whether the model said it. */
function isSaid({ type, role }: JsonObject): boolean {
  return role === undefined ? !String(type).endsWith('_output') : role === 'assistant'
}

/** What the user said, and not what Codex says of its surroundings. */
function isTurn({ type, role, content }: JsonObject): boolean {
  if (type !== 'message' || role !== 'user') return false
  const [first] = objectsIn(content)
  return !/^\s*(?:<[a-z_]+>|# AGENTS\.md)/.test(textIn(first?.text) ?? '')
}

function isOldHeader(line: JsonObject): boolean {
  return (
    typeof line.id === 'string' &&
    typeof line.timestamp === 'string' &&
    'instructions' in line &&
    !('type' in line)
  )
}

/** The session that started this one, if it is a subagent's. */
function parentOf(source: unknown): string | undefined {
  const subagent = isJsonObject(source) ? source.subagent : undefined
  const spawn = isJsonObject(subagent) ? subagent.thread_spawn : undefined
  const id = isJsonObject(spawn) ? spawn.parent_thread_id : undefined
  return typeof id === 'string' ? id : undefined
}

/** As many messages may stand for what came before. The summary is the last of a history. */
const SUMMARY_MESSAGES_MAX = 16

/** What the model was given instead of what came before: a history that replaces it, or the text of a summary. */
function summaryOf({ message, replacement_history }: JsonObject): SummaryMessage[] {
  const items = Array.isArray(replacement_history) ? replacement_history.filter(isJsonObject) : []
  if (items.length > 0)
    return items.slice(-SUMMARY_MESSAGES_MAX).map((blob) => ({ format: 'responses', blob }))
  if (typeof message !== 'string' || message === '') return []
  const content = [{ type: 'input_text', text: message }]
  return [{ format: 'responses', blob: { type: 'message', role: 'user', content } }]
}

/** An item of `codex exec --json` as items of the Responses API. */
function itemsOf(item: JsonObject, place: string): JsonObject[] {
  const { type, text, command, aggregated_output: output, exit_code, changes, status, query } = item
  if (type === 'agent_message')
    return [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: text ?? '' }] }]
  if (type === 'reasoning')
    return [{ type: 'reasoning', summary: [{ type: 'summary_text', text: text ?? '' }] }]
  const called = (name: string, given: unknown, result: unknown) => [
    { type: 'function_call', call_id: place, name, arguments: writeJson(given ?? {}) },
    {
      type: 'function_call_output',
      call_id: place,
      output: typeof result === 'string' ? result : writeJson(result),
    },
  ]
  if (type === 'command_execution')
    return called('shell', { command }, { output: output ?? '', metadata: { exit_code: exit_code ?? null } })
  if (type === 'file_change') return called('apply_patch', { changes }, { status })
  if (type === 'web_search') return called('web_search', { query }, { status: status ?? 'completed' })
  if (type !== 'mcp_tool_call') return []
  const { server, tool, arguments: given, result, error } = item
  return called(`${server}.${tool}`, given, error == null ? (result ?? '') : { error })
}
