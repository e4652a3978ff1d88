import type { Database, Queryable, Tenant } from '@annals/kits/postgres/database.js'
import { plainArray, textArray } from '@annals/kits/postgres/statement.js'
import type { Mark } from '@annals/redaction'
import type { FastifyRequest } from 'fastify'
import { reaches } from '../access/reach.js'
import { ADD_MASKS, FIND_MASKS, HOLD_SESSION, LAST_MASKS } from './mask_queries.js'

/** Findings, by a digest in place of the value. */
export interface FoundMark {
  name: string
  digest: string
  session_id: string | undefined
}

/** The numbers of masks, by `keyOf`. */
export type Numbers = Record<string, number>

/** Values of one kind that a session tells apart; the masks of all others have no number. */
const NUMBERS_MAX = 10_000
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export function keyOf({ name, digest, session_id = '' }: FoundMark): string {
  return `${session_id} ${name} ${digest}`
}

export function maskOf({ action, name }: Mark, digest: string, number: number | undefined): string {
  if (action === 'drop') return ''
  if (action === 'hash') return `<${name}:${digest.slice(0, 12)}>`
  return number === undefined ? `<${name}>` : `<${name}_${number}>`
}

/**
 * Numbers what was found, each value once in its session: that which an object around it names, or else the one in the
 * path. What is in no session that there is has no number.
 */
export async function numberMarks(
  request: FastifyRequest,
  marks: readonly FoundMark[],
  session_id = ((request.params ?? {}) as { session_id?: string }).session_id ?? '',
): Promise<Numbers> {
  const bySession = new Map<string, FoundMark[]>()
  for (const mark of marks) {
    const session = mark.session_id ?? session_id.toLowerCase()
    if (!bySession.has(session)) bySession.set(session, [])
    bySession.get(session)!.push(mark)
  }
  const numbers: Numbers = {}
  for (const [session, own] of bySession)
    if (UUID.test(session) && (await reaches(request, session)))
      await numberIn(request, session, own, numbers)
  return numbers
}

async function numberIn(
  { database, project_id }: Tenant<Database>,
  session_id: string,
  marks: readonly FoundMark[],
  numbers: Numbers,
): Promise<void> {
  /** Takes the numbers that there are, and returns the marks that have none yet. */
  const take = (wanted: readonly FoundMark[], rows: ReadonlyArray<Record<string, unknown>>) => {
    const known = new Map(rows.map(({ name, digest, number }) => [`${name} ${digest}`, Number(number)]))
    return wanted.filter((mark) => {
      const number = known.get(`${mark.name} ${mark.digest}`)
      if (number !== undefined) numbers[keyOf(mark)] = number
      return number === undefined
    })
  }
  const found = async (connection: Queryable, wanted: readonly FoundMark[]) => {
    const digests = textArray([...new Set(wanted.map(({ digest }) => digest))])
    return take(wanted, await connection.query(FIND_MASKS, [project_id, session_id, digests]))
  }
  const missing = await found(database, marks)
  if (missing.length === 0) return
  await database.transaction(async (connection) => {
    const [head] = await connection.query(HOLD_SESSION, [project_id, session_id])
    if (!head) return
    // Somebody may have been faster; from here on nobody is.
    const left = await found(connection, missing)
    const added = left.length > 0 ? await nextOf(connection, project_id, session_id, left) : []
    if (added.length === 0) return
    await connection.query(ADD_MASKS.statement, [
      project_id,
      session_id,
      textArray(added.map(({ name }) => name)),
      plainArray(added.map(({ number }) => number)),
      textArray(added.map(({ digest }) => digest)),
    ])
    take(left, added)
  })
}

async function nextOf(
  connection: Queryable,
  project_id: string,
  session_id: string,
  marks: readonly FoundMark[],
): Promise<Array<{ name: string; digest: string; number: number }>> {
  const names = [...new Set(marks.map(({ name }) => name))]
  const rows = await connection.query(LAST_MASKS, [project_id, session_id, textArray(names)])
  const last = new Map(rows.map(({ name, number }) => [name!, Number(number)]))
  const values = new Map(marks.map(({ name, digest }) => [`${name} ${digest}`, { name, digest }]))
  return [...values.values()].flatMap(({ name, digest }) => {
    const number = last.get(name)! + 1
    if (number > NUMBERS_MAX) return []
    last.set(name, number)
    return { name, digest, number }
  })
}
