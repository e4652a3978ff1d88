import { isJsonObject } from '@annals/messages/json'
import { type FileFacts, type Format, type Parser, stemOf } from '../format.js'
import { listIn, objectIn, textIn, without } from '../json.js'
import type { Output } from '../output.js'
import type { Head } from '../reading/head.js'
import type { JsonObject } from '../records.js'
import { type Left, TREE_MAX, Tree } from './claude_tree.js'
import { cursorMessageOf } from './cursor_stream.js'
import { isOfQwenCode } from './gemini_cli.js'

/** Kinds of lines that only Claude Code writes, for files that begin with one that names no session. */
const OWN_TYPES = new Set(['summary', 'file-history-snapshot', 'queue-operation', 'custom-title', 'ai-title'])
/** What a view may fold: it repeats what messages say, or is of use to the tool alone. */
const NOISE = new Set([
  'progress',
  'file-history-snapshot',
  'queue-operation',
  'last-prompt',
  'mode',
  'permission-mode',
  'worktree-state',
  'content-replacement',
  'attachment',
  'summary',
  'custom-title',
  'ai-title',
  'stream_event',
  'system.stop_hook_summary',
  'system.turn_duration',
])
/** Lines that say what a session is called, and where they say it. */
const TITLES: Record<string, string> = {
  summary: 'summary',
  'custom-title': 'customTitle',
  'ai-title': 'aiTitle',
}
const ANSWERS_MAX = 50
const QUEUED_MAX = 50
/** Of these, only the last may be written again. */
const BLOCKS_MAX = 20

export const CLAUDE_CODE: Format = {
  name: 'claude-code',
  title: "Claude Code's transcripts",
  shape: 'lines',
  knows: (sample, head) =>
    typeof sample.type === 'string' &&
    // Qwen Code writes such lines, with messages of Gemini.
    !head.samples.some((one) => isOfQwenCode(one) || isOfDroid(one)) &&
    ((typeof sample.sessionId === 'string' &&
      ('parentUuid' in sample || 'uuid' in sample || OWN_TYPES.has(sample.type) || NOISE.has(sample.type))) ||
      // Copies that people share may lack the session.
      (typeof sample.uuid === 'string' && isJsonObject(sample.message) && 'timestamp' in sample) ||
      isStreamed(sample) ||
      (sample.type === 'summary' && typeof sample.leafUuid === 'string') ||
      (sample.type === 'file-history-snapshot' && typeof sample.messageId === 'string')),
  open: (output, file) => new ClaudeCodeParser(output, file),
}

/** Droid begins what it writes to its output as Claude Code does. */
function isOfDroid({ type, role, text, finalText }: JsonObject): boolean {
  return (
    (type === 'message' && role !== undefined && typeof text === 'string') || typeof finalText === 'string'
  )
}

/** A line that the command writes to its output with `--output-format stream-json`, as its SDK reads it. */
function isStreamed({ session_id, type, subtype, message, total_cost_usd }: JsonObject): boolean {
  if (typeof session_id !== 'string') return false
  return (
    (type === 'system' && subtype === 'init') ||
    (type === 'result' && total_cost_usd !== undefined) ||
    ((type === 'assistant' || type === 'user') && isJsonObject(message))
  )
}

interface Answer {
  key: string
  id: string
  said: { block: JsonObject; entry_id: string }[]
}

class ClaudeCodeParser implements Parser {
  /** By session, the one that was read last at the end. */
  private readonly trees = new Map<string, Tree>()
  private latest_tree = ''
  /** By session, what its last prompt leaves behind, until the model goes on here or there. */
  private readonly leaving = new Map<string, Left>()
  private tree_lines = 0
  /** The first line of a subagent whose lines stand among its session's, for each of its lines. */
  private readonly roots = new Map<string, string>()
  private readonly fallback: string
  /** Sessions of which it is known in which folder they were. */
  private readonly placed = new Set<string>()
  private readonly models = new Map<string, string>()
  /** The time of the latest line that has one: titles, snapshots and settings have none. At first, that of the first. */
  private at: unknown
  /** The blocks of the last answers. A list: copies that a map leaves as it changes would keep them longer. */
  private readonly answers: Answer[] = []
  /** Prompts that were typed while the agent worked, and that no line has said yet. */
  private readonly queued: string[] = []
  private results = 0

  constructor(
    private readonly out: Output,
    file: FileFacts,
  ) {
    this.fallback = inHead(file.head, 'sessionId', 'session_id') ?? stemOf(file.name)
    this.at = inHead(file.head, 'timestamp')
  }

  read(line: unknown): void {
    if (!isJsonObject(line)) return
    const key = this.keyOf(line)
    const type = typeof line.type === 'string' ? line.type : 'unknown'
    this.openSession(key, line)
    if (type === 'system' && line.subtype === 'init') this.noteModel(key, line)
    if (type === 'queue-operation') this.queue(line)
    const title = TITLES[type] === undefined ? undefined : line[TITLES[type]]
    if (typeof title === 'string') this.out.session(key, { configs: { title } })
    const native = typeof line.uuid === 'string' ? line.uuid : undefined
    this.at = line.timestamp ?? this.at
    const facts = { native, at: this.at }
    const is_of_tree = native !== undefined && line.parentUuid !== undefined
    if (is_of_tree) this.rewind(key, line)
    const { message, ...rest } = line
    const called = cursorMessageOf(line)
    let message_id: string | undefined
    if ((type === 'user' || type === 'assistant') && isJsonObject(message) && !isOfCommand(line)) {
      this.noteModel(key, message)
      message_id = this.out.message(key, 'anthropic', message, { ...facts, meta: { claude: rest } })
      if (message_id !== undefined) this.out.retract(key, this.repeated(key, message, message_id))
      if (message_id !== undefined && line.isCompactSummary === true)
        this.out.compact(key, message_id, [{ format: 'anthropic', blob: message }])
    } else if (called) {
      const { blob, at, native } = called
      this.out.message(key, 'anthropic', blob, { native, at, meta: { cursor: rest } })
    } else {
      const kind = isOfCommand(line) ? 'api_error' : kindOf(type, line)
      this.out.raw(key, kind, line, { ...facts, noise: NOISE.has(type) || NOISE.has(kind) })
    }
    if (type === 'result' && typeof line.is_error === 'boolean') this.finished(key, line)
    if (is_of_tree) this.grow(key, line, message_id)
  }

  /** How a run of the command went, which is the last line that it writes. */
  private finished(
    key: string,
    { is_error, subtype, num_turns, duration_ms, total_cost_usd }: JsonObject,
  ): void {
    const data = { success: !is_error, subtype, num_turns, duration_ms, total_cost_usd }
    this.out.outcome(key, without(data), { native: `outcome ${this.results++}` })
  }

  /**
   * Blocks of an answer that an earlier line has already, perhaps not yet whole: while an answer arrives, a line may be
   * written more than once. The last one counts, as it knows what was used.
   */
  private repeated(key: string, { id, content }: JsonObject, entry_id: string): string[] {
    const [block, ...others] = listIn(content)
    if (typeof id !== 'string' || !isJsonObject(block) || others.length > 0) return []
    const found = this.answers.findIndex((answer) => answer.key === key && answer.id === id)
    const said = found === -1 ? [] : this.answers.splice(found, 1)[0]!.said.slice(-BLOCKS_MAX)
    const before = said.filter((one) => isBeginning(one.block, block))
    this.answers.push({
      key,
      id,
      said: [...said.filter((one) => !before.includes(one)), { block, entry_id }],
    })
    if (this.answers.length > ANSWERS_MAX) this.answers.shift()
    return before.map((one) => one.entry_id)
  }

  private openSession(key: string, line: JsonObject): void {
    const { cwd, gitBranch: git_branch, agentId: agent_id } = line
    const version = line.version ?? line.claude_code_version
    // The first lines of a session may not say where it was.
    if (this.out.isOpen(key) && (this.placed.has(key) || cwd === undefined)) return
    if (cwd !== undefined) this.placed.add(key)
    const parent = key.includes('/') ? key.slice(0, key.indexOf('/')) : undefined
    // A subagent may have a file of its own, which may be read before that of its session.
    if (parent !== undefined) this.out.mention(parent, { agent: 'claude-code', cwd })
    const names = parent === undefined ? {} : { agent_id, subagent: true }
    // Claude Code begins with its tools and its version, and Cursor with neither.
    const is_cursor = line.subtype === 'init' && line.tools === undefined && version === undefined
    const agent = is_cursor ? 'cursor' : 'claude-code'
    this.out.session(key, { parent, configs: { agent, cwd, git_branch, version, ...names } })
  }

  /** The session of a line. A subagent's is below that of the session that started it. */
  private keyOf(line: JsonObject): string {
    const named = line.sessionId ?? line.session_id
    const session = typeof named === 'string' ? named : this.fallback
    // The SDK says by which call a subagent was started.
    if (typeof line.parent_tool_use_id === 'string') return `${session}/${line.parent_tool_use_id}`
    if (line.isSidechain !== true) return session
    if (typeof line.agentId === 'string') return `${session}/${line.agentId}`
    const { uuid, parentUuid } = line
    const root = this.roots.get(parentUuid as string) ?? (uuid as string | undefined) ?? 'sidechain'
    if (typeof uuid === 'string' && this.roots.size < TREE_MAX) this.roots.set(uuid, root)
    return `${session}/${root}`
  }

  private noteModel(key: string, { model }: JsonObject): void {
    if (typeof model !== 'string' || model === this.models.get(key) || model.startsWith('<')) return
    this.models.set(key, model)
    this.out.session(key, { configs: { model } })
  }

  /**
   * Takes back what the user rewound: the prompt in whose place this one stands, and what followed it. A prompt that
   * waited in the queue stands where it was typed, and takes nothing back. Where that is not known, it gets no answer, and
   * the model goes on where it was.
   */
  private rewind(key: string, line: JsonObject): void {
    const tree = this.treeOf(key)
    const leaving = this.leaving.get(key)
    if (leaving && line.type === 'assistant' && !isOfCommand(line)) {
      this.leaving.delete(key)
      if (tree.isLeft(parentOf(line))) tree.returnTo(leaving)
      else this.out.retract(key, leaving.ids)
    }
    if (isPrompt(line) && !this.wasQueued(line)) this.leave(key, tree.leave(parentOf(line)))
  }

  private leave(key: string, left: Left): void {
    const before = this.leaving.get(key)
    before?.ids.push(...left.ids)
    before?.names.push(...left.names)
    if (!before && left.ids.length > 0) this.leaving.set(key, left)
  }

  private wasQueued({ message }: JsonObject): boolean {
    const said = objectIn(message).content
    const at = typeof said === 'string' ? this.queued.indexOf(said) : -1
    if (at !== -1) this.queued.splice(at, 1)
    return at !== -1
  }

  private queue({ operation, content }: JsonObject): void {
    if (operation !== 'enqueue' || typeof content !== 'string') return
    this.queued.push(content)
    if (this.queued.length > QUEUED_MAX) this.queued.shift()
  }

  end(): void {
    for (const [key, { ids }] of this.leaving) this.out.retract(key, ids)
  }

  /** Adds a line to its tree. The trees that were left for longest are forgotten. */
  private grow(key: string, line: JsonObject, message_id: string | undefined): void {
    const tree = this.treeOf(key)
    this.tree_lines -= tree.size
    tree.add({ uuid: line.uuid as string, parent: parentOf(line), is_prompt: isPrompt(line), message_id })
    this.tree_lines += tree.size
    for (const [oldest, { size }] of this.trees) {
      if (this.tree_lines <= TREE_MAX || oldest === key) break
      this.trees.delete(oldest)
      this.tree_lines -= size
    }
  }

  private treeOf(key: string): Tree {
    const tree = this.trees.get(key) ?? new Tree()
    if (key !== this.latest_tree) this.trees.delete(key)
    this.trees.set(key, tree)
    this.latest_tree = key
    return tree
  }
}

/** Whether a block is another one, or its beginning. */
function isBeginning(one: JsonObject, whole: JsonObject): boolean {
  if (one.type !== whole.type) return false
  if (one.type === 'tool_use') return one.id === whole.id
  const [text, more] = [one, whole].map((block) => textIn(block.text) ?? textIn(block.thinking))
  return text !== undefined && more?.startsWith(text) === true
}

function parentOf({ parentUuid }: JsonObject): string | null {
  return typeof parentUuid === 'string' ? parentUuid : null
}

/** What the user said by themselves, as the first line after which the conversation goes on. */
function isPrompt(line: JsonObject): boolean {
  if (line.type !== 'user' || line.isMeta === true || line.isCompactSummary === true) return false
  const { content } = (isJsonObject(line.message) ? line.message : {}) as JsonObject
  return !(
    Array.isArray(content) && content.some((block) => isJsonObject(block) && block.type === 'tool_result')
  )
}

/** What the command wrote in the model's place, such as that a limit is reached. It sends none of that to the model. */
function isOfCommand({ isApiErrorMessage }: JsonObject): boolean {
  return isApiErrorMessage === true
}

function kindOf(type: string, { subtype }: JsonObject): string {
  return typeof subtype === 'string' ? `${type}.${subtype}` : type
}

function inHead({ samples }: Head, ...names: string[]): string | undefined {
  return samples
    .flatMap((line) => names.map((name) => line[name]))
    .find((value) => typeof value === 'string') as string | undefined
}
