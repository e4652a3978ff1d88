import { writeJson } from '@annals/messages/json'
import { type Block, type LogEntry, type ReadEntry, SessionReader } from '@annals/messages/session'
import { noteCalls } from './noted_calls.js'

/** Whose words an entry has: the agent's own, or those of somebody who may want to deceive it. */
export type Source = 'agent' | 'user' | 'tool' | 'event'

/** An entry, as a model is shown it and may quote it. */
export interface ShownEntry {
  seq: number
  source: Source
  text: string
  /** What the record shows of its calls and results, beyond their words: nobody said this, and it cannot be quoted. */
  note?: string
}

/** What somebody else than the agent said, whole: the agent may repeat what of it is not shown. */
export type HeardEntry = Pick<ShownEntry, 'seq' | 'text'>

/** What is known of how a run ended; `reward` from 0 (failure) to 1 (success). */
export interface Outcome {
  reward?: number
  label?: string
  group?: string
}

/** A session, or as much of it as a model is shown. */
export interface ShownRun {
  session_id: string
  outcome: Outcome
  entries: ShownEntry[]
  heard: HeardEntry[]
  /** The tools that are called in these entries. */
  tools: string[]
}

const ENTRY_CHARS_MAX = 2_000
/** About 10,000 tokens. */
const RUN_CHARS_MAX = 40_000
/** Those in front say what the task is. */
const FIRST_ENTRIES = 4

/** Whether a run succeeded; undefined where nobody has said. */
export function hasSucceeded({ reward }: Outcome): boolean | undefined {
  return reward === undefined ? undefined : reward >= 0.5
}

const LABEL_MAX = 200

/** Of what a caller says of an outcome, what is understood: a finite reward, a label and a group. */
export function outcomeOf({ reward, label, group }: Record<string, unknown>): Outcome {
  const given = typeof reward === 'boolean' ? Number(reward) : reward
  const text = (value: unknown) =>
    typeof value === 'string' || typeof value === 'number'
      ? String(value).slice(0, LABEL_MAX).toWellFormed()
      : undefined
  const told = { label: text(label), group: text(group) }
  return {
    ...(typeof given === 'number' && Number.isFinite(given) && { reward: given }),
    ...(told.label !== undefined && { label: told.label }),
    ...(told.group !== undefined && { group: told.group }),
  }
}

/** Of a stored outcome, what has the type that it should: an import may bring anything. */
export function storedOutcome(json: string): Outcome {
  const { reward, group } = JSON.parse(json) as Record<string, unknown>
  return {
    ...(typeof reward === 'number' && { reward }),
    ...(typeof group === 'string' && { group }),
  }
}

/**
 * The entries of a session that a model is shown: those in front, and as many at the end as there is room for.
 * Instructions of an operator are left out, as nothing is to be learnt from them, and so are thoughts. `unread`: where
 * entries are that the log lacks here.
 */
export function showRun(
  session_id: string,
  outcome: Outcome,
  log: Iterable<LogEntry>,
  unread: readonly number[] = [],
): ShownRun {
  const all: ShownEntry[] = []
  const heard: HeardEntry[] = []
  const tools = new Set<string>()
  for (const { read, source, note } of readAll(log, unread)) {
    for (const block of read.blocks) if (block.kind === 'call') tools.add(block.call.name)
    if (!source) continue
    if (source !== 'agent') heard.push({ seq: read.seq, text: textOf(read.blocks) })
    const said = textOf(read.blocks.filter((block) => !isSaidAgain(block, read)))
    const text = said.slice(0, ENTRY_CHARS_MAX).toWellFormed().trim()
    if (text) all.push({ seq: read.seq, source, text, ...(note && { note }) })
  }
  return { session_id, outcome, entries: fitting(all), heard, tools: [...tools] }
}

function readAll(log: Iterable<LogEntry>, unread: readonly number[]) {
  const reader = new SessionReader()
  // Read to the end first: a result below belongs to its call.
  const all = [...log].map((entry) => {
    const read = reader.read(entry)
    return { read, source: sourceOf(read) }
  })
  const users = all.filter(({ source }) => source === 'user').map(({ read }) => read.seq)
  const noteOf = noteCalls(
    all.map(({ read }) => read),
    users,
    unread,
  )
  return all.map((one) => ({ ...one, note: noteOf(one.read) }))
}

/** Messages of a session that a model is to summarise, and the last one that there is room for. */
export interface ShownStretch {
  entries: ShownEntry[]
  last_seq: number
  /** Whether the user says something in it. */
  has_question: boolean
}

/** About 25,000 tokens. */
const STRETCH_CHARS_MAX = 100_000
const STRETCH_ENTRY_CHARS = { max: 4_000, min: 200 }

/**
 * As many messages as there is room for, at least one, each cut in its middle if it is long. `must_fit`: all of them, cut
 * shorter for that.
 */
export function showStretch(
  log: Iterable<LogEntry>,
  must_fit: boolean,
  unread: readonly number[] = [],
): ShownStretch {
  const all = readAll(log, unread)
  const fair = Math.floor(STRETCH_CHARS_MAX / Math.max(all.length, 1))
  const { max, min } = STRETCH_ENTRY_CHARS
  const chars_max = must_fit ? Math.max(min, Math.min(max, fair)) : max
  const shown: ShownStretch = { entries: [], last_seq: 0, has_question: false }
  let room = STRETCH_CHARS_MAX
  for (const { read, source, note } of all) {
    const blocks = read.blocks.filter((block) => !isSaidAgain(block, read))
    const text = source ? shortened(textOf(blocks), chars_max) : ''
    room -= text.length
    if (room < 0 && shown.last_seq > 0 && !must_fit) break
    shown.last_seq = read.seq
    shown.has_question ||= source === 'user'
    if (source && text) shown.entries.push({ seq: read.seq, source, text, ...(note && { note }) })
  }
  return shown
}

function shortened(text: string, chars_max: number): string {
  const half = chars_max / 2
  const short = text.length <= chars_max ? text : `${text.slice(0, half)}\n[…]\n${text.slice(-half)}`
  return short.toWellFormed().trim()
}

function sourceOf({ kind, speaker, blocks }: ReadEntry): Source | undefined {
  if (speaker === 'system' || speaker === 'developer') return undefined
  if (kind === 'message') return speaker === 'assistant' ? 'agent' : speaker === 'tool' ? 'tool' : 'user'
  if (speaker === 'outcome') return undefined
  const has = (wanted: string) => blocks.some((block) => block.kind === wanted)
  return has('result') ? 'tool' : has('call') ? 'agent' : 'event'
}

/** Whether a call was recorded before, or another result of its call counts, as in a context. */
function isSaidAgain(block: Block, { seq }: ReadEntry): boolean {
  if (block.kind === 'call') return block.is_repeat
  return block.kind === 'result' && block.call?.result !== undefined && block.call.result.seq !== seq
}

function textOf(blocks: readonly Block[]): string {
  const texts = blocks.map((block) => {
    switch (block.kind) {
      case 'text':
        return block.text
      case 'streamed':
        return block.whole.is_thinking ? '' : block.text
      case 'call':
        return `${block.call.name} ${block.call.arguments}`
      case 'result':
        return block.result.text
      case 'data':
      case 'state':
        return writeJson(block.value ?? null)
      default:
        return ''
    }
  })
  return texts.filter((text) => text !== '').join('\n')
}

function fitting(all: ShownEntry[]): ShownEntry[] {
  const first = all.slice(0, FIRST_ENTRIES)
  let room = RUN_CHARS_MAX - first.reduce((sum, { text }) => sum + text.length, 0)
  let from = all.length
  while (from > first.length) {
    room -= all[from - 1]!.text.length
    if (room < 0) break
    from -= 1
  }
  return [...first, ...all.slice(from)]
}
