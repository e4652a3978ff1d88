import { writeJson } from '@annals/messages/json'
import {
  type Conversation,
  conversationOf,
  type Meaning,
  meaningOf,
  originOf,
  sessionNamed,
  userNamed,
} from './meaning.js'
import { LOG_TYPE, logData, nameOf, SPAN_TYPE, spanData, timeOf } from './record_data.js'
import { fingerprint, type Said } from './said.js'
import type { Attributes, LogRecord, Span } from './telemetry.js'

/** Makes what ids and chains of messages are made of. */
export interface Naming {
  /** A UUID: the same for the same name below the same UUID. */
  idOf(namespace: string, name: string): string
  digestOf(text: string): string
}

/** A message of a conversation: its id is made of all that was said up to it. Instructions have one of their own. */
export interface Link {
  id: string
  said: Said
  is_instruction: boolean
}

export interface Part {
  id: string
  type: string
  data: () => Attributes
  /** When it began and ended. */
  began_at: string | null
  ended_at: string | null
  input: Link[]
  output: Link[]
  /** Its messages follow those of a part that was or is stored. */
  continues: boolean
  /** Where it may have been stored before it was known to which session it belongs. */
  elsewhere: string | undefined
}

export interface Group {
  id: string
  user: string | undefined
  configs: Record<string, unknown>
  parts: Part[]
}

/** What a project's session is called by a name that its programs give it. */
function groupOf(groups: Map<string, Group>, id: string, [attribute, name]: [string, string]): Group {
  let group = groups.get(id)
  if (!group) {
    const otel = { [attribute]: name.slice(0, 1_024).toWellFormed() }
    group = { id, user: undefined, configs: { source: 'opentelemetry', otel }, parts: [] }
    groups.set(id, group)
  }
  return group
}

/** What a session's configs may get, each only once. */
function describe(group: Group, item: Span | LogRecord, meaning: Meaning): void {
  const { agent, model, provider } = meaning
  const facts = { agent, model, provider, ...originOf(item, item.attributes) }
  for (const [name, text] of Object.entries(facts)) if (text !== undefined) group.configs[name] ??= text
  group.user ??= userNamed(item.attributes, item.resource)
}

/** Sorts spans out by session: in the order in which they ended, as most are sent. */
export function spansBySession(spans: Span[], project_id: string, naming: Naming): Group[] {
  const groups = new Map<string, Group>()
  const ownName = new Map(spans.map((span) => [span, sessionNamed(span.attributes, span.resource)] as const))
  const nameOfTrace = namesOfTraces(ownName)
  const sorted = spans.toSorted((a, b) => compare(a.end_time_unix_nano, b.end_time_unix_nano))
  for (const span of sorted) {
    const { trace_id, span_id, attributes } = span
    const own = ownName.get(span)
    const of_trace: [string, string] = ['trace_id', trace_id]
    const found = own ?? nameOfTrace(span)
    const name = found ?? of_trace
    const group = groupOf(groups, naming.idOf(project_id, name[1]), name)
    const meaning = meaningOf(span.name, attributes, span.events)
    describe(group, span, meaning)
    const conversation = meaning.operation === 'model' ? conversationOf(span) : undefined
    const [input, output] = conversation ? chained(naming, group.id, conversation) : NO_LINKS
    const last_id = (output.at(-1) ?? input.at(-1))?.id
    const times = { started_at: timeOf(span.start_time_unix_nano), ended_at: timeOf(span.end_time_unix_nano) }
    const beside = conversation && last_id ? { conversation, last_id } : undefined
    group.parts.push({
      id: naming.idOf(project_id, `${trace_id}/${span_id}`),
      type: SPAN_TYPE,
      data: () => spanData(span, meaning, times, beside),
      began_at: times.started_at,
      ended_at: times.ended_at ?? times.started_at,
      input,
      output,
      continues: false,
      elsewhere: found && !own ? naming.idOf(project_id, trace_id) : undefined,
    })
  }
  return [...groups.values()]
}

/**
 * The session's name for spans that do not have it: that of the nearest span above that was sent with them, or the only
 * one in their trace.
 */
function namesOfTraces(
  names: ReadonlyMap<Span, [string, string] | undefined>,
): (span: Span) => [string, string] | undefined {
  const ofTrace = new Map<string, [string, string] | 'several'>()
  for (const [{ trace_id }, name] of names) {
    if (!name) continue
    const before = ofTrace.get(trace_id)
    ofTrace.set(trace_id, before === undefined || before[1] === name[1] ? name : 'several')
  }
  let byId: Map<string, Span> | undefined
  return (span) => {
    const name = ofTrace.get(span.trace_id)
    if (name !== 'several') return name
    byId ??= new Map([...names.keys()].map((one) => [`${one.trace_id}/${one.span_id}`, one]))
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
  naming: Naming,
): { groups: Group[]; left: number } {
  const groups = new Map<string, Group>()
  let left = 0
  const sorted = records.toSorted((a, b) => compare(momentOf(a), momentOf(b)))
  const spoken = conversationsOf(sorted)
  for (const record of sorted) {
    const { trace_id, span_id, attributes, resource } = record
    const name = sessionNamed(attributes, resource) ?? (trace_id ? ['trace_id', trace_id] : undefined)
    if (!name) {
      left += 1
      continue
    }
    const group = groupOf(groups, naming.idOf(project_id, name[1]!), name as [string, string])
    const named = { ...attributes, 'event.name': nameOf(record) }
    describe(group, record, meaningOf('', named))
    const said = spoken.get(spanOf(record))
    if (said && !said.links) said.links = linksOf(naming, group.id, spanOf(record), said.conversation)
    const conversation = said?.links && isSaying(record) ? said.conversation : undefined
    const [input, output] = said?.links ?? NO_LINKS
    const at = timeOf(momentOf(record))
    const last_id = (output.at(-1) ?? input.at(-1))?.id ?? ''
    const content = writeJson([record.body, attributes, record.event_name, record.severity_text])
    group.parts.push({
      id: naming.idOf(project_id, `${trace_id}/${span_id}/${momentOf(record)}/${naming.digestOf(content)}`),
      type: LOG_TYPE,
      data: () => logData(record, conversation && { conversation, last_id }),
      began_at: at,
      ended_at: at,
      input: said?.first === record ? input : [],
      output: said?.answer === record ? output : [],
      continues: said !== undefined && (said.first !== record || isAnswerAlone(said.conversation)),
      elsewhere: undefined,
    })
  }
  return { groups: [...groups.values()], left }
}

/** What records of one span say of its messages. `links`: not known, where the answer alone came and nobody knows to what. */
interface Spoken {
  conversation: Conversation
  first: LogRecord
  answer: LogRecord
  links: Links | undefined
}

type Links = [input: Link[], output: Link[]]

const NO_LINKS: Links = [[], []]
const ANSWER = /^gen_ai\.(choice|content\.completion|client\.inference\.operation\.details)$/

function isSaying(record: LogRecord): boolean {
  return nameOf(record).startsWith('gen_ai.')
}

function spanOf({ trace_id, span_id }: LogRecord): string {
  return `${trace_id}/${span_id}`
}

function conversationsOf(records: LogRecord[]): Map<string, Spoken> {
  const bySpan = new Map<string, LogRecord[]>()
  for (const record of records.filter(isSaying)) {
    const list = bySpan.get(spanOf(record)) ?? []
    list.push(record)
    bySpan.set(spanOf(record), list)
  }
  const found = new Map<string, Spoken>()
  for (const [span, together] of bySpan) {
    const events = together.map((record) => ({
      name: nameOf(record),
      attributes: { ...record.attributes, body: record.body },
    }))
    const conversation = conversationOf({ attributes: {}, events })
    if (!conversation) continue
    const used = ['gen_ai.system_instructions', 'gen_ai.input.messages', 'gen_ai.output.messages']
    const first = together[0]!
    const answer = together.find((record) => ANSWER.test(nameOf(record))) ?? first
    found.set(span, { conversation: { ...conversation, used }, first, answer, links: undefined })
  }
  return found
}

/**
 * How far conversations were when models were asked, by session and span. What a model is sent is logged at once, what it
 * answers when it has, so that exporters send the two in different requests. Another process does not know: the answer is
 * then a message once the next call repeats it.
 */
const asked = new Map<string, string>()
const ASKED_MAX = 5_000

function isAnswerAlone({ input, output }: Pick<Conversation, 'input' | 'output'>): boolean {
  return input.length === 0 && output.length > 0
}

function linksOf(
  naming: Naming,
  session_id: string,
  span: string,
  { input, output }: Conversation,
): Links | undefined {
  const key = `${session_id}/${span}`
  if (isAnswerAlone({ input, output })) {
    const chain = asked.get(key)
    if (chain === undefined) return undefined
    const [sent, answered] = chained(naming, session_id, { input, output }, chain)
    return [sent, answered]
  }
  const links = chained(naming, session_id, { input, output })
  asked.delete(key)
  asked.set(key, links[2])
  if (asked.size > ASKED_MAX) asked.delete(asked.keys().next().value!)
  return [links[0], links[1]]
}

/** The messages of a conversation that goes on from `begun`, and how far it is once the model was asked. */
function chained(
  { idOf, digestOf }: Naming,
  session_id: string,
  { input, output }: Pick<Conversation, 'input' | 'output'>,
  begun = session_id,
): [...Links, asked: string] {
  let chain = begun
  const link = (said: Said): Link => {
    const print = fingerprint(said)
    const is_instruction = said.role === 'system'
    if (!is_instruction) chain = digestOf(`${chain}\n${print}`)
    return { id: idOf(session_id, is_instruction ? `system ${print}` : chain), said, is_instruction }
  }
  const sent = input.map(link)
  const after = chain
  return [sent, output.map(link), after]
}

function momentOf({ time_unix_nano, observed_time_unix_nano }: LogRecord): bigint {
  return time_unix_nano || observed_time_unix_nano
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0
}
