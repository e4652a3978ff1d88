import { hash } from 'node:crypto'
import { writeJson } from '@annals/messages/json'
import {
  type Attributes,
  type Conversation,
  conversationOf,
  fingerprint,
  type LogRecord,
  type Meaning,
  meaningOf,
  originOf,
  type Said,
  type Span,
  sessionNamed,
  userNamed,
} from '@annals/otel'
import { namedId } from './named_id.js'
import { LOG_TYPE, logData, nameOf, SPAN_TYPE, spanData, timeOf } from './stored_entries.js'

/** A message of a conversation: its id is made of all that was said up to it. Instructions have one of their own. */
export interface Link {
  id: string
  said: Said
  is_instruction: boolean
}

/** A span or a record, and what was said beside it. */
export interface Part {
  id: string
  type: string
  data: () => Attributes
  /** When it began and ended. */
  began_at: string | null
  ended_at: string | null
  input: Link[]
  output: Link[]
  /** Where it may have been stored before it was known to which session it belongs. */
  elsewhere: string | undefined
}

/** What goes to one session. */
export interface Group {
  id: string
  user: string | undefined
  configs: Record<string, unknown>
  parts: Part[]
}

/** What a project's session is called by a name that its programs give it. */
function groupOf(groups: Map<string, Group>, project_id: string, [attribute, name]: [string, string]): Group {
  const id = namedId(project_id, name)
  let group = groups.get(id)
  if (!group) {
    const otel = { [attribute]: name.slice(0, 1_024).toWellFormed() }
    group = { id, user: undefined, configs: { source: 'opentelemetry', otel }, parts: [] }
    groups.set(id, group)
  }
  return group
}

/** What a session's configs may get, each only once. */
function describe(group: Group, item: Span | LogRecord, attributes: Attributes, meaning: Meaning): void {
  const { agent, model, provider } = meaning
  group.configs = {
    ...Object.fromEntries(
      Object.entries({ agent, model, provider }).filter(([, text]) => text !== undefined),
    ),
    ...originOf(item, attributes),
    ...group.configs,
  }
  group.user ??= userNamed({ ...item.resource, ...attributes })
}

/** Sorts spans out by session: in the order in which they ended, as most are sent. */
export function spansBySession(spans: Span[], project_id: string): Group[] {
  const groups = new Map<string, Group>()
  const nameOfTrace = namesOfTraces(spans)
  const sorted = spans.toSorted((a, b) => compare(a.end_time_unix_nano, b.end_time_unix_nano))
  for (const span of sorted) {
    const { trace_id, span_id, attributes, resource } = span
    const own = sessionNamed({ ...resource, ...attributes })
    const of_trace: [string, string] = ['trace_id', trace_id]
    const found = own ?? nameOfTrace(span)
    const group = groupOf(groups, project_id, found ?? of_trace)
    const meaning = meaningOf(span.name, attributes)
    describe(group, span, attributes, meaning)
    const conversation = meaning.operation === 'model' ? conversationOf(span) : undefined
    const [input, output] = chained(group.id, conversation)
    const last_id = (output.at(-1) ?? input.at(-1))?.id
    group.parts.push({
      id: namedId(project_id, `${trace_id}/${span_id}`),
      type: SPAN_TYPE,
      data: () => spanData(span, meaning, conversation && last_id ? { conversation, last_id } : undefined),
      began_at: timeOf(span.start_time_unix_nano),
      ended_at: timeOf(span.end_time_unix_nano) ?? timeOf(span.start_time_unix_nano),
      input,
      output,
      elsewhere: found && !own ? namedId(project_id, trace_id) : undefined,
    })
  }
  return [...groups.values()]
}

/**
 * The session's name for spans that do not have it: that of the nearest span above that was sent with them, or the only
 * one in their trace.
 */
function namesOfTraces(spans: Span[]): (span: Span) => [string, string] | undefined {
  const byId = new Map(spans.map((span) => [`${span.trace_id}/${span.span_id}`, span]))
  const ofTrace = new Map<string, [string, string] | 'several'>()
  for (const { trace_id, attributes, resource } of spans) {
    const name = sessionNamed({ ...resource, ...attributes })
    if (!name) continue
    const before = ofTrace.get(trace_id)
    ofTrace.set(trace_id, before === undefined || before[1] === name[1] ? name : 'several')
  }
  return (span) => {
    const name = ofTrace.get(span.trace_id)
    if (name !== 'several') return name
    let above = byId.get(`${span.trace_id}/${span.parent_span_id}`)
    for (let steps = 0; above && steps < 100; steps++) {
      const own = sessionNamed(above.attributes)
      if (own) return own
      above = byId.get(`${above.trace_id}/${above.parent_span_id}`)
    }
    return undefined
  }
}

/** Sorts records out by session. Those without a session and a trace are left. */
export function recordsBySession(
  records: LogRecord[],
  project_id: string,
): { groups: Group[]; left: number } {
  const groups = new Map<string, Group>()
  let left = 0
  const sorted = records.toSorted((a, b) => compare(momentOf(a), momentOf(b)))
  const spoken = conversationsOf(sorted)
  for (const record of sorted) {
    const { trace_id, span_id, attributes, resource } = record
    const name =
      sessionNamed({ ...resource, ...attributes }) ?? (trace_id ? ['trace_id', trace_id] : undefined)
    if (!name) {
      left += 1
      continue
    }
    const group = groupOf(groups, project_id, name as [string, string])
    const named = { ...attributes, 'event.name': nameOf(record) }
    describe(group, record, attributes, meaningOf('', named))
    const conversation = spoken.get(record)
    const [input, output] = chained(group.id, conversation?.is_first ? conversation : undefined)
    const at = timeOf(momentOf(record))
    const last_id = (output.at(-1) ?? input.at(-1))?.id ?? ''
    const content = writeJson([record.body, attributes, record.event_name, record.severity_text])
    group.parts.push({
      id: namedId(project_id, `${trace_id}/${span_id}/${momentOf(record)}/${hash('sha256', content)}`),
      type: LOG_TYPE,
      data: () => logData(record, conversation && { conversation, last_id }),
      began_at: at,
      ended_at: at,
      input,
      output,
      elsewhere: undefined,
    })
  }
  return { groups: [...groups.values()], left }
}

/** What records of the same span say of its messages, for the first of them and, without messages, for the others. */
function conversationsOf(records: LogRecord[]): Map<LogRecord, Conversation & { is_first: boolean }> {
  const bySpan = new Map<string, LogRecord[]>()
  for (const record of records) {
    if (!nameOf(record).startsWith('gen_ai.')) continue
    const key = `${record.trace_id}/${record.span_id}`
    bySpan.set(key, [...(bySpan.get(key) ?? []), record])
  }
  const found = new Map<LogRecord, Conversation & { is_first: boolean }>()
  for (const together of bySpan.values()) {
    const events = together.map((record) => ({
      name: nameOf(record),
      attributes: { ...record.attributes, body: record.body },
    }))
    const conversation = conversationOf({ attributes: {}, events })
    if (!conversation) continue
    const used = ['gen_ai.system_instructions', 'gen_ai.input.messages', 'gen_ai.output.messages']
    for (const [index, record] of together.entries())
      found.set(record, { ...conversation, used, is_first: index === 0 })
  }
  return found
}

function chained(
  session_id: string,
  conversation: Conversation | undefined,
): [input: Link[], output: Link[]] {
  if (!conversation) return [[], []]
  let chain = session_id
  const link = (said: Said): Link => {
    const print = fingerprint(said)
    const is_instruction = said.role === 'system'
    if (!is_instruction) chain = hash('sha256', `${chain}\n${print}`)
    return { id: namedId(session_id, is_instruction ? `system ${print}` : chain), said, is_instruction }
  }
  return [conversation.input.map(link), conversation.output.map(link)]
}

function momentOf({ time_unix_nano, observed_time_unix_nano }: LogRecord): bigint {
  return time_unix_nano || observed_time_unix_nano
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0
}
