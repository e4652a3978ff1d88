import fc from 'fast-check'
import { type Operation, operations, type Parameter } from './document.ts'
import { HOSTILE_BODIES, HOSTILE_HEADERS, RawJson } from './hostile.ts'
import { fitting, hostile, hostileText, nearlyFitting } from './values.ts'

/**
 * Ids and names that earlier answers have given, by the path parameter that takes them; and by the id of what lies in
 * something, the id of that.
 */
export type Known = Record<string, string[]>

/** A request that is not yet bound to ids that exist. */
export interface Plan {
  operation: Operation
  /** Path parameters: which of the known ones, or a text of any kind. */
  path: Record<string, { known: number } | { text: string }>
  query: Array<[string, string]>
  headers: Record<string, string>
  body: string | undefined
}

/** A request as it is sent. */
export interface Request {
  operation: Operation
  method: string
  path: string
  headers: Record<string, string>
  body: string | undefined
}

const NOBODYS_ID = '01890a5d-ac96-774b-bcce-b302099a8057'

const anyRequest = fc.oneof(...operations.map(planOf))

/** As many plans as wished, always the same ones for a seed. */
export function plans(seed: number, count: number): Plan[] {
  return fc.sample(anyRequest, { seed, numRuns: count })
}

function planOf(operation: Operation): fc.Arbitrary<Plan> {
  const inPath = operation.parameters.filter((parameter) => parameter.in === 'path')
  const inQuery = operation.parameters.filter((parameter) => parameter.in === 'query')
  const inHeader = operation.parameters.filter((parameter) => parameter.in === 'header')
  return fc.record({
    operation: fc.constant(operation),
    path: fc.record(Object.fromEntries(inPath.map((parameter) => [parameter.name, pathValue(parameter)]))),
    query: queryOf(inQuery),
    headers: headersOf(inHeader),
    body: bodyOf(operation),
  })
}

function pathValue({ schema }: Parameter): fc.Arbitrary<{ known: number } | { text: string }> {
  const text = fc.oneof(fitting(schema).map(String), hostileText).map((text) => ({ text }))
  return fc.oneof(
    { weight: 4, arbitrary: fc.nat(1_000).map((known) => ({ known })) },
    { weight: 1, arbitrary: text },
  )
}

function queryOf(parameters: Parameter[]): fc.Arbitrary<Array<[string, string]>> {
  const stray = { weight: 1, arbitrary: fc.tuple(hostileText, hostileText) }
  if (parameters.length === 0)
    return fc.array(stray.arbitrary, { maxLength: 1, size: 'xsmall' }).filter(rarely)
  const known = parameters.map(({ name, schema }) => ({
    weight: 3,
    arbitrary: fc.tuple(
      fc.constant(name),
      fc.oneof({ weight: 5, arbitrary: fitting(schema).map(String) }, { weight: 1, arbitrary: hostileText }),
    ),
  }))
  return fc.array(fc.oneof(...known, stray), { maxLength: 3 })
}

/** Most requests shall have no stray parameter, or nothing else would ever be looked at. */
function rarely(query: Array<[string, string]>): boolean {
  return query.length === 0 || query[0]![0].length % 3 === 0
}

function headersOf(parameters: Parameter[]): fc.Arbitrary<Record<string, string>> {
  // Seldom, since most conditions do not hold, and most keys stand for something else.
  const own = fc
    .tuple(
      ...parameters.map(({ name, schema }) => seldom(fitting(schema)).map((value) => [name, value] as const)),
    )
    .map((pairs) =>
      Object.fromEntries(
        pairs.flatMap(([name, value]) => (value === undefined ? [] : [[name, sendable(value)]])),
      ),
    )
  const stray = fc.oneof(
    { weight: 6, arbitrary: fc.constant({}) },
    { weight: 1, arbitrary: fc.constantFrom(...HOSTILE_HEADERS) },
  )
  return fc.tuple(own, stray).map(([mine, theirs]) => ({ ...mine, ...theirs }))
}

function seldom<T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value })
}

/** What Node's client lets into a header. What it does not is sent by tests/gate/hostile_connections.test.ts. */
function sendable(value: unknown): string {
  return String(value).replace(/[^\x20-\x7e\xa0-\xff]/g, '?')
}

function bodyOf({ body, method }: Operation): fc.Arbitrary<string | undefined> {
  if (!body) {
    const nothing = { weight: 9, arbitrary: fc.constant(undefined) }
    return method === 'GET' ? fc.constant(undefined) : fc.oneof(nothing, hostile.map(writeJson))
  }
  return fc.oneof(
    { weight: 5, arbitrary: fitting(body).map(writeJson) },
    { weight: 5, arbitrary: nearlyFitting(body).map(writeJson) },
    { weight: 1, arbitrary: hostile.map(writeJson) },
    { weight: 1, arbitrary: fc.constantFrom(undefined, ...HOSTILE_BODIES) },
  )
}

function writeJson(value: unknown): string {
  const raw: string[] = []
  const text = JSON.stringify(value, (_key, item) =>
    item instanceof RawJson ? `\ue000${raw.push(item.text) - 1}\ue000` : item,
  )
  return text.replace(/"\ue000(\d+)\ue000"/g, (_whole, index) => raw[Number(index)]!)
}

/** A plan with ids that exist, where it asks for such. What lies in something is asked for there. */
export function bind(plan: Plan, known: Known): Request {
  const { operation, query, headers, body } = plan
  const names = [...operation.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!)
  const ids = Object.fromEntries(names.map((name) => [name, idFor(plan.path[name]!, known[name] ?? [])]))
  const [outer, inner] = names
  if (outer && inner && known[ids[inner]!]) ids[outer] = known[ids[inner]!]![0]!
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => encode(ids[name]!))
  const pairs = query.map(([name, value]) => `${encode(name)}=${encode(value)}`)
  const content = body === undefined ? {} : { 'content-type': 'application/json' }
  return {
    operation,
    method: operation.method,
    path: pairs.length > 0 ? `${path}?${pairs.join('&')}` : path,
    headers: { ...content, ...headers },
    body,
  }
}

function idFor(chosen: { known: number } | { text: string }, known: string[]): string {
  if ('text' in chosen) return chosen.text
  return known.length > 0 ? known[chosen.known % known.length]! : NOBODYS_ID
}

function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed())
}
