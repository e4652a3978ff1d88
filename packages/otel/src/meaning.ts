import { isJsonObject } from '@annals/messages/json'
import type { Dialect, Operation, Source, ToolField, UsageName } from './dialect.js'
import { DIALECTS, ENVIRONMENT_ATTRIBUTES, SESSION_ATTRIBUTES, USER_ATTRIBUTES } from './dialects.js'
import { jsonOr, messagesIn, type Said } from './said.js'
import { type Carrier, type Found, messagesAt, toolMessages } from './sources.js'
import type { Attributes, Origin } from './telemetry.js'

/** What a span or a record is about, by whatever convention it says so. */
export interface Meaning {
  operation: Operation | undefined
  agent: string | undefined
  model: string | undefined
  provider: string | undefined
  usage: Partial<Record<UsageName, number>>
  tool: Partial<Record<ToolField, unknown>> | undefined
}

/** What a call of a model was sent, and answered. `used`: the attributes that say nothing else. */
export interface Conversation {
  input: Said[]
  output: Said[]
  used: string[]
}

const TEXT_LENGTH_MAX = 256

/** What Logfire puts in place of what it takes for a secret, sessions' names among them: it names nothing. */
const SCRUBBED = '[Scrubbed due to '

/** A text that names something: not empty, and of bounded length. */
export function firstText(attributes: Attributes, names: readonly string[]): string | undefined {
  for (const name of names) {
    const text = textAt(attributes, name)
    if (text !== undefined) return text
  }
  return undefined
}

function textAt(attributes: Attributes, name: string): string | undefined {
  const value = valueAt(attributes, name)
  const text = typeof value === 'number' ? String(value) : value
  return typeof text === 'string' && text !== '' && !text.startsWith(SCRUBBED) ? text : undefined
}

function shortText(attributes: Attributes, names: readonly string[]): string | undefined {
  return firstText(attributes, names)?.slice(0, TEXT_LENGTH_MAX).toWellFormed()
}

/** The name of the session, and the attribute that has it: of the span itself, or else of its resource. */
export function sessionNamed(
  attributes: Attributes,
  resource: Attributes = {},
): [attribute: string, name: string] | undefined {
  for (const attribute of SESSION_ATTRIBUTES) {
    const name = textAt(attributes, attribute) ?? textAt(resource, attribute)
    if (name !== undefined) return [attribute, name]
  }
  return undefined
}

/** The user's identifier, if it is one that can be. */
export function userNamed(attributes: Attributes, resource: Attributes = {}): string | undefined {
  const user = firstText(attributes, USER_ATTRIBUTES) ?? firstText(resource, USER_ATTRIBUTES)
  return user === undefined || user === '.' || user === '..' || [...user].length > TEXT_LENGTH_MAX
    ? undefined
    : user
}

/** What a session's configs say of where it comes from. */
export function originOf(
  { resource }: Pick<Origin, 'resource'>,
  attributes: Attributes,
): Record<string, string> {
  const named = {
    service: shortText(resource, ['service.name']),
    environment: shortText(attributes, ENVIRONMENT_ATTRIBUTES) ?? shortText(resource, ENVIRONMENT_ATTRIBUTES),
  }
  return Object.fromEntries(Object.entries(named).filter(([, text]) => text !== undefined)) as Record<
    string,
    string
  >
}

export function meaningOf(name: string, attributes: Attributes, events: Carrier['events'] = []): Meaning {
  const dialects = tablesOf(attributes)
  const operation = first(dialects, ({ operation = {}, named = {} }) => {
    for (const [attribute, kinds] of Object.entries(operation)) {
      const value = valueAt(attributes, attribute)
      // MLflow writes texts as JSON.
      const text = typeof value === 'string' ? value.replace(/^"(.*)"$/, '$1') : ''
      if (Object.hasOwn(kinds, text)) return kinds[text]
    }
    return Object.entries(named).find(([start]) => name.startsWith(start))?.[1]
  })
  const text = (field: 'agent' | 'model' | 'provider') =>
    first(dialects, (dialect) => shortText(attributes, dialect[field] ?? []))
  return {
    operation,
    agent: text('agent'),
    model: text('model'),
    provider: text('provider'),
    usage: usageIn(attributes, dialects),
    tool: operation === 'tool' ? toolIn(name, { attributes, events }, dialects) : undefined,
  }
}

function dialectsOf(attributes: Attributes): Dialect[] {
  return DIALECTS.filter(({ when }) => when === undefined || when in attributes)
}

/** For each attribute that says what a span is about: the places of the tables that name it, as bits. */
const PLACES = new Map<string, number>()
/** The tables that need no attribute: a span's name is enough. */
let by_name = 0
for (const [place, dialect] of DIALECTS.entries()) {
  const { operation = {}, named, agent = [], model = [], provider = [], usage = {}, tool = {} } = dialect
  const names = [Object.keys(operation), agent, model, provider, Object.values(usage), Object.values(tool)]
  for (const name of names.flat(2)) {
    const attribute = name.split('#', 1)[0]!
    PLACES.set(attribute, (PLACES.get(attribute) ?? 0) | (1 << place))
  }
  if (named) by_name |= 1 << place
}

/** The tables that may say what a span is about, which are few: each span asks them for a dozen things. */
function tablesOf(attributes: Attributes): Dialect[] {
  let places = by_name
  for (const name of Object.keys(attributes)) places |= PLACES.get(name) ?? 0
  return DIALECTS.filter(
    ({ when }, place) => (places & (1 << place)) !== 0 && (when === undefined || when in attributes),
  )
}

function first<Found>(
  dialects: readonly Dialect[],
  of: (dialect: Dialect) => Found | undefined,
): Found | undefined {
  for (const dialect of dialects) {
    const found = of(dialect)
    if (found !== undefined) return found
  }
  return undefined
}

function usageIn(attributes: Attributes, dialects: readonly Dialect[]): Meaning['usage'] {
  const usage: Meaning['usage'] = {}
  for (const { usage: names = {} } of dialects)
    for (const [field, from] of Object.entries(names) as Array<[UsageName, readonly string[]]>) {
      if (usage[field] !== undefined) continue
      // Claude Code has numbers as texts.
      const value = from
        .map((name) => valueAt(attributes, name))
        .find((one) => one !== undefined && one !== '')
      const number = typeof value === 'string' ? Number(value) : value
      if (typeof number === 'number' && Number.isSafeInteger(number) && number >= 0) usage[field] = number
    }
  return usage
}

function valueAt(attributes: Attributes, name: string): unknown {
  const hash = name.indexOf('#')
  if (hash === -1) return attributes[name]
  const value = attributes[name.slice(0, hash)]
  if (value === undefined) return undefined
  const member = name.slice(hash + 1)
  const read = typeof value === 'string' ? jsonOr(value) : value
  return member.split('.').reduce<unknown>((at, name) => objectOrList(at)[name], read)
}

function objectOrList(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function toolIn(span_name: string, carrier: Carrier, dialects: readonly Dialect[]): Meaning['tool'] {
  const { attributes } = carrier
  const tool: NonNullable<Meaning['tool']> = {}
  for (const { tool: names = {} } of dialects)
    for (const [field, from] of Object.entries(names) as Array<[ToolField, readonly string[]]>) {
      const value = from.map((name) => valueAt(attributes, name)).find((one) => one != null && one !== '')
      // A text may come as JSON.
      if (value !== undefined)
        tool[field] ??= typeof value === 'string' && value[0] === '"' ? jsonOr(value) : value
    }
  const [asked, answered] = toolMessages(carrier)
  tool.arguments = givenTo(tool.arguments ?? asked)
  tool.result = answerOf(tool.result ?? answered)
  // "execute_tool search" and the like.
  tool.name ??= span_name.replace(/^(execute_tool|running tool:?|tool:?) /i, '')
  return tool
}

/** What a decorated function of Python was called with, of which a model names all. */
function givenTo(value: unknown): unknown {
  const read = typeof value === 'string' ? jsonOr(value) : value
  if (!isJsonObject(read)) return value
  const { args, kwargs, ...others } = read
  const is_named = Array.isArray(args) && args.length === 0 && isJsonObject(kwargs)
  // The last one is smolagents' own.
  return is_named && Object.keys(others).every((name) => name === 'sanitize_inputs_outputs') ? kwargs : value
}

/** The text of a message of LangChain, which is what its tools return. */
function answerOf(value: unknown): unknown {
  const read = typeof value === 'string' ? jsonOr(value) : value
  // What LangSmith has of one that failed.
  if (isJsonObject(read) && Object.keys(read).length === 0) return undefined
  const message = isJsonObject(read) && isJsonObject(read.output) ? read.output : read
  return isJsonObject(message) && message.type === 'tool' && 'content' in message ? message.content : value
}

/** What a call of a model was sent and answered, if it says so. */
export function conversationOf(carrier: Carrier): Conversation | undefined {
  const input = side(carrier, 'input')
  const output = side(carrier, 'output')
  if (!input && !output) return undefined
  const system = first(dialectsOf(carrier.attributes), ({ system = [] }) => instructionsIn(carrier, system))
  const answers = output?.messages ?? []
  // Several answers to choose from: one is what was said, the others stay with the span.
  const hasChoices = answers.length > 1 && answers.every(({ role }) => role === 'assistant')
  const used = [...(system?.used ?? []), ...(input?.used ?? []), ...(hasChoices ? [] : (output?.used ?? []))]
  const repeats = dialectsOf(carrier.attributes).flatMap((dialect) => dialect.repeats ?? [])
  return {
    input: [...(system?.messages ?? []), ...(input?.messages ?? [])],
    output: hasChoices ? answers.slice(0, 1) : answers,
    used: [...used, ...(hasChoices ? [] : repeats.filter((name) => name in carrier.attributes))],
  }
}

function side(carrier: Carrier, name: 'input' | 'output'): Found | undefined {
  return first(dialectsOf(carrier.attributes), (dialect) => {
    for (const source of dialect[name] ?? []) {
      const found = messagesAt(source, carrier, name)
      if (found) return found
    }
    return undefined
  })
}

function instructionsIn({ attributes }: Carrier, sources: readonly Source[]): Found | undefined {
  for (const source of sources) {
    if (!('json' in source)) continue
    const messages = messagesIn(attributes[source.json], 'system')
    if (messages.length > 0) return { messages, used: [source.json] }
  }
  return undefined
}

/** A body of a record that has members, which then count as attributes do. */
export function membersOf(body: unknown): Attributes {
  return isJsonObject(body) ? body : {}
}
