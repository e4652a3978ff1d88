import { parseJson, writeJson } from '@annals/messages/json'
import { type LogEntry, SessionReader, type ToolCall } from '@annals/messages/session'
import { errorTemplate } from './error_template.js'
import { oneLine } from './text.js'

/** Words of an entry that show something, as they stand there. */
export interface Quote {
  seq: number
  quote: string
}

/** An error of a tool, as a statement that cites where it happened, and where the call then succeeded. */
export interface ErrorFinding {
  /** The same for all errors of one kind. */
  key: string
  tool: string
  text: string
  is_repaired: boolean
  cites: Quote[]
}

/** What a piece of a log says to the rules. No text in it has half of a character, which PostgreSQL does not take. */
export interface RuleFindings {
  errors: ErrorFinding[]
  /** How often each tool was called. */
  tools: Record<string, number>
  /** The data of the last event of type `outcome`. */
  outcome: Record<string, unknown> | undefined
}

const QUOTE_MAX = 300
const ERRORS_MAX = 100
const TOOLS_MAX = 100
const NAME_MAX = 100

/**
 * Finds what can be learnt without a model: errors of tools, with the repair if the next call of the same tool
 * succeeded. The entries are a piece of one session in order; those up to `known_seq` were read before, and are here
 * so that results find their calls.
 */
export function findErrors(entries: Iterable<LogEntry>, known_seq = 0): RuleFindings {
  const reader = new SessionReader()
  const calls: ToolCall[] = []
  let outcome: Record<string, unknown> | undefined
  for (const entry of entries) {
    if (entry.kind === 'event' && entry.type === 'outcome' && entry.seq > known_seq) outcome = entry.data
    for (const block of reader.read(entry).blocks)
      if (block.kind === 'call' && !block.is_repeat) calls.push(block.call)
  }
  return { errors: errorsOf(calls, known_seq).map(wellFormed), tools: toolsOf(calls, known_seq), outcome }
}

function toolsOf(calls: readonly ToolCall[], known_seq: number): Record<string, number> {
  const tools = new Map<string, number>()
  for (const { name, seq } of calls) {
    const known = tools.get(name)
    if (seq > known_seq && (known !== undefined || tools.size < TOOLS_MAX) && name.length <= NAME_MAX)
      tools.set(name, (known ?? 0) + 1)
  }
  return Object.fromEntries(tools)
}

function errorsOf(calls: readonly ToolCall[], known_seq: number): ErrorFinding[] {
  const next = nextOfSameTool(calls)
  const found = new Map<string, ErrorFinding>()
  for (const [index, call] of calls.entries()) {
    const { name, result, verdict } = call
    if (verdict !== 'failed' || !result || name.length > NAME_MAX) continue
    const following = next[index]
    const repair = following?.verdict === 'ok' ? following : undefined
    if (Math.max(result.seq, repair?.result?.seq ?? 0) <= known_seq) continue
    const template = errorTemplate(result.text)
    const key = `${name}\n${template}`
    const known = found.get(key)
    if (template === '' || (known?.is_repaired ?? found.size >= ERRORS_MAX)) continue
    if (known && !repair) continue
    const finding = findingOf(call, key, template, repair)
    if (known) finding.cites = [known.cites[0]!, ...finding.cites.slice(1)]
    found.set(key, finding)
  }
  return [...found.values()]
}

/** For each call, the one that comes next of the same tool. */
function nextOfSameTool(calls: readonly ToolCall[]): (ToolCall | undefined)[] {
  const latest = new Map<string, ToolCall>()
  const next: (ToolCall | undefined)[] = []
  for (let index = calls.length - 1; index >= 0; index--) {
    const call = calls[index]!
    next[index] = latest.get(call.name)
    latest.set(call.name, call)
  }
  return next
}

function findingOf(
  { name, arguments: given, result }: ToolCall,
  key: string,
  template: string,
  repair: ToolCall | undefined,
): ErrorFinding {
  const cites = [{ seq: result!.seq, quote: quoteFrom(result!.text.trim(), 0) }]
  let text = `\`${oneLine(name)}\` answered “${template}”.`
  const changed = repair ? changedArguments(given, repair.arguments) : []
  if (repair && changed.length > 0) {
    text += ` The next call succeeded with ${changed.length > 1 ? 'other arguments:' : 'another'} ${changed.map((one) => `\`${one}\``).join(', ')}.`
    cites.push({ seq: repair.seq, quote: quoteOfArgument(repair.arguments, changed[0]!) })
  } else if (repair) {
    text += ' The same call succeeded when it was made again.'
    cites.push({ seq: repair.seq, quote: repair.name })
  }
  return { key, tool: name, text, is_repaired: repair !== undefined, cites }
}

/** Slicing may part the two halves of a character. */
function wellFormed({ key, tool, text, cites, is_repaired }: ErrorFinding): ErrorFinding {
  return {
    key: key.toWellFormed(),
    tool: tool.toWellFormed(),
    text: text.toWellFormed(),
    is_repaired,
    cites: cites.map(({ seq, quote }) => ({ seq, quote: quote.toWellFormed() })),
  }
}

/** The names of arguments that a call has otherwise than the one before; at most five. Only names of a plain form: the rest may be data. */
function changedArguments(before: string, after: string): string[] {
  const old = argumentsOf(before)
  const now = argumentsOf(after)
  const names = [...new Set([...Object.keys(old), ...Object.keys(now)])]
  const changed = names.filter((name) => writeJson(old[name] ?? null) !== writeJson(now[name] ?? null))
  return changed.filter((name) => /^[A-Za-z_][\w-]{0,40}$/.test(name) && !/\d{4}/.test(name)).slice(0, 5)
}

function argumentsOf(text: string): Record<string, unknown> {
  try {
    const value = parseJson(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : {}
  } catch {
    return {}
  }
}

function quoteOfArgument(given: string, name: string): string {
  const from = Math.max(given.indexOf(`"${name}"`), 0)
  return quoteFrom(given, from)
}

/** As many whole words as a quote may have: half a secret would not be recognized by who masks them. */
function quoteFrom(text: string, from: number): string {
  const quote = text.slice(from, from + QUOTE_MAX)
  if (from + QUOTE_MAX >= text.length) return quote
  let end = quote.length
  while (end > 0 && quote[end - 1]!.trim() !== '') end--
  return quote.slice(0, end).trimEnd() || quote
}
