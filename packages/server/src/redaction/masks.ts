import type { Database, Queryable, Tenant } from '@annals/kits/postgres/database.js'
import { plainArray, textArray } from '@annals/kits/postgres/statement.js'
import type { KindOfMarks } from '@annals/redaction'
import type { FastifyRequest } from 'fastify'
import { reaches } from '../access/reach.js'
import { ADD_MASKS, FIND_MASKS, HOLD_SESSION, LAST_MASKS } from './mask_queries.js'

/** Findings of one kind in one session: each value once, as a digest. */
export interface FoundMarks {
  name: string
  session_id: string | undefined
  digests: string[]
}

/** The numbers of masks, for each digest of each kind; 0: it has none. */
export type Numbers = readonly number[][]

/** Values of one kind that a session tells apart; the masks of all others have no number. */
const NUMBERS_MAX = 10_000
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export function maskOf({ action, name }: KindOfMarks, digest: string, number = 0): string {
  if (action === 'drop') return ''
  if (action === 'hash') return `<${name}:${digest.slice(0, 12)}>`
  return number === 0 ? `<${name}>` : `<${name}_${number}>`
}

/**
 * Numbers what was found, each value once in its session: that which an object around it names, or else the one in the
 * path. What is in no session that there is has no number.
 */
export async function numberMarks(
  request: FastifyRequest,
  marks: readonly FoundMarks[],
  session_id = ((request.params ?? {}) as { session_id?: string }).session_id ?? '',
): Promise<Numbers> {
  const numbers: number[][] = marks.map(() => [])
  const bySession = new Map<string, Values>()
  for (const [kind, { name, session_id: named, digests }] of marks.entries()) {
    if (digests.length === 0) continue
    const session = named ?? session_id.toLowerCase()
    const values = bySession.get(session) ?? { kinds: [], names: [], digests: [] }
    bySession.set(session, values)
    for (const digest of digests) {
      values.kinds.push(kind)
      values.names.push(name)
      values.digests.push(digest)
    }
  }
  for (const [session, values] of bySession) {
    if (!UUID.test(session) || !(await reaches(request, session))) continue
    const found = await numbersIn(request, session, values)
    for (const [index, kind] of values.kinds.entries()) numbers[kind]!.push(found[index]!)
  }
  return numbers
}

/** Of each value of a session: the place of its kind, its name and its digest. */
interface Values {
  kinds: number[]
  names: string[]
  digests: string[]
}

async function numbersIn(
  { database, project_id }: Tenant<Database>,
  session_id: string,
  { names, digests }: Values,
): Promise<number[]> {
  const sent = [project_id, session_id, textArray(names), plainArray(digests)]
  const find = async (connection: Queryable) => {
    const [row] = await connection.query(FIND_MASKS, sent)
    return row!.numbers!.split(',').map(Number)
  }
  const known = await find(database)
  if (!known.includes(0)) return known
  return database.transaction(async (connection) => {
    const [head] = await connection.query(HOLD_SESSION, [project_id, session_id])
    if (!head) return known
    // Somebody may have been faster; from here on nobody is.
    const numbers = await find(connection)
    const missing = names.flatMap((name, index) => (numbers[index] === 0 ? { name, index } : []))
    const last = await lastOf(connection, project_id, session_id, missing)
    const added = new Map<string, { name: string; digest: string; number: number }>()
    for (const { name, index } of missing) {
      const digest = digests[index]!
      const key = `${name} ${digest}`
      const number = added.get(key)?.number ?? last.get(name)! + 1
      if (number > NUMBERS_MAX) continue
      added.set(key, { name, digest, number })
      last.set(name, Math.max(last.get(name)!, number))
      numbers[index] = number
    }
    if (added.size === 0) return numbers
    const rows = [...added.values()]
    await connection.query(ADD_MASKS.statement, [
      project_id,
      session_id,
      textArray(rows.map(({ name }) => name)),
      plainArray(rows.map(({ number }) => number)),
      plainArray(rows.map(({ digest }) => digest)),
    ])
    return numbers
  })
}

async function lastOf(
  connection: Queryable,
  project_id: string,
  session_id: string,
  marks: ReadonlyArray<{ name: string }>,
): Promise<Map<string, number>> {
  const names = textArray([...new Set(marks.map(({ name }) => name))])
  const rows = await connection.query(LAST_MASKS, [project_id, session_id, names])
  return new Map(rows.map(({ name, number }) => [name!, Number(number)]))
}
