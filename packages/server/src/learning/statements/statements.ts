import { setImmediate as breathe } from 'node:timers/promises'
import { AnnalsError, notFound } from '@annals/kits/errors.js'
import { newId } from '@annals/kits/ids.js'
import { BEFORE_ALL, type Listed, type ListPosition } from '@annals/kits/lists/listed.js'
import { type ListReader, readList } from '@annals/kits/lists/read_list.js'
import { readResource } from '@annals/kits/lists/tenant_resource.js'
import type { Database, Queryable, Tenant } from '@annals/kits/postgres/database.js'
import { call } from '@annals/kits/postgres/stored_function.js'
import { renderSkill, type SpaceStatement, type StatementKind } from '@annals/learning'
import { readPolicy } from '../sessions/space_sessions.js'
import {
  ADD_FEEDBACK,
  ADD_STATEMENT,
  CHANGE_STATEMENT,
  ERASE_CITES,
  LIST_VERSIONS,
  listStatements,
  READ_ACTIVE_STATEMENTS,
  READ_STATEMENT,
  STATEMENTS_MAX,
  type StatementFilter,
} from './statement_queries.js'

const CONSIDERED_MAX = 300
const CITES_AT_ONCE_MAX = 1_000
const VERSIONS_AT_ONCE = 5
const SKILL_DEFAULT = 'general'
/** Characters that the event loop works on without a pause. */
export const LENGTH_AT_ONCE = 32 * 1024

function readStatement(tenant: Tenant, id: string): Promise<string> {
  return readResource(tenant, 'statement', READ_STATEMENT, id)
}

export async function findStatements(database: Queryable, filter: StatementFilter, position: ListPosition) {
  await readPolicy({ database, project_id: filter.project_id }, filter.learning_space_id)
  return readList({ database, project_id: filter.project_id }, listStatements(filter, position))
}

/**
 * A page of what a space's skills were, newest first, read a few at a time: each may have megabytes.
 * @throws AnnalsError learning_space_not_found, overloaded
 */
export async function findVersions(
  { database, project_id, memory }: ListReader,
  space_id: string,
  { after = BEFORE_ALL.desc, limit }: Pick<ListPosition, 'limit' | 'after'>,
): Promise<Listed[]> {
  await readPolicy({ database, project_id }, space_id)
  const versions: Listed[] = []
  for (let rows_max = Math.min(VERSIONS_AT_ONCE, limit + 1); rows_max > 0; ) {
    const { created_at, id } = versions.at(-1) ?? after
    const rows = await database.query(LIST_VERSIONS, [project_id, space_id, created_at, id, rows_max])
    versions.push(...(rows as unknown as Listed[]))
    await memory?.hold(2 * versions.reduce((sum, { json }) => sum + json.length, 0))
    rows_max = rows.length < rows_max ? 0 : Math.min(VERSIONS_AT_ONCE, limit + 1 - versions.length)
  }
  return versions
}

/** Adds a person's own statement. Returns it as JSON. @throws AnnalsError learning_space_not_found, quota_exceeded */
export async function addStatement(
  { database, project_id }: Tenant<Database>,
  space_id: string,
  { text, kind = 'fact', skill = SKILL_DEFAULT }: { text: string; kind?: StatementKind; skill?: string },
): Promise<string> {
  const description = `What was learnt about ${skill}. Use it for tasks of that kind.`
  const statement = [space_id, newId(), newId(), skill, description, kind, text]
  const id = await database.transaction(async (connection) => {
    const answer = await call(connection, ADD_STATEMENT, project_id, ...statement)
    if (answer === statement[1]) await addVersion(connection, project_id, answer!, 'person', 'Added.')
    return answer
  })
  if (id === null) throw notFound('learning_space')
  if (id === '')
    throw new AnnalsError(
      'quota_exceeded',
      `A learning space has at most ${STATEMENTS_MAX} statements. Nothing was stored; use another space.`,
    )
  return readStatement({ database, project_id }, id)
}

/** A person's change of a statement. Returns it as JSON. @throws AnnalsError statement_not_found, statement_revoked */
export async function changeStatement(
  { database, project_id }: Tenant<Database>,
  id: string,
  { state, text, kind }: { state?: 'active' | 'retired'; text?: string; kind?: StatementKind },
): Promise<string> {
  await database.transaction(async (connection) => {
    await connection.query(CHANGE_STATEMENT.hold_space, [project_id, id])
    const [before] = await connection.query(CHANGE_STATEMENT.lock, [project_id, id])
    if (!before) throw notFound('statement')
    if (state === undefined && text === undefined && kind === undefined) return
    if (before.state === 'revoked') throw new AnnalsError('statement_revoked')
    await connection.query(CHANGE_STATEMENT.update, [
      project_id,
      id,
      state ?? null,
      text ?? null,
      kind ?? null,
    ])
    const is_shown = before.state === 'active' || state === 'active'
    const reason = state === 'active' ? 'Approved.' : state === 'retired' ? 'Retired.' : 'Edited.'
    if (is_shown) await addVersion(connection, project_id, id, 'person', reason)
  })
  return readStatement({ database, project_id }, id)
}

export async function addVersion(
  connection: Queryable,
  project_id: string,
  statement_id: string,
  author: string,
  reason: string,
): Promise<void> {
  const [row] = await connection.query(CHANGE_STATEMENT.lock, [project_id, statement_id])
  if (!row) throw notFound('statement')
  const { skill_id, learning_space_id } = row
  const { texts, ids } = await renderLearntSkill(connection, project_id, skill_id!)
  const statements = JSON.stringify(Object.fromEntries(ids.map((id) => [id, true])))
  const pieces: Buffer[] = []
  for (const text of texts) {
    pieces.push(Buffer.from(text))
    await breathe()
  }
  // As bytes, which the driver need not encode all at once.
  const version = [learning_space_id!, newId(), skill_id!, author, reason, statements, Buffer.concat(pieces)]
  await connection.query(CHANGE_STATEMENT.add_version, [project_id, ...version])
  await connection.query(CHANGE_STATEMENT.drop_old_versions, [project_id, learning_space_id!])
}

/** SKILL.md of a learnt skill in pieces, from its active statements, and their ids. Others get their turns meanwhile. */
export async function renderLearntSkill(connection: Queryable, project_id: string, skill_id: string) {
  const [skill] = await connection.query(CHANGE_STATEMENT.skill, [project_id, skill_id])
  // It is being erased, with its space or its project.
  if (!skill) throw notFound('skill')
  const rows = await connection.query(CHANGE_STATEMENT.active, [project_id, skill_id])
  const statements = rows.map(({ id, kind, text, cites }) => ({
    id: id!,
    kind: kind as StatementKind,
    text: text!,
    cites: JSON.parse(cites!) as { session_id: string; seq: number }[],
  }))
  const texts = ['']
  for (const piece of renderSkill({ name: skill.name!, description: skill.description! }, statements)) {
    texts[texts.length - 1] += piece
    if (texts.at(-1)!.length < LENGTH_AT_ONCE) continue
    texts.push('')
    await breathe()
  }
  return { texts, ids: statements.map(({ id }) => id) }
}

export async function readActiveStatements({ database, project_id }: Tenant, space_id: string) {
  const found = await database.query(READ_ACTIVE_STATEMENTS, [project_id, space_id, CONSIDERED_MAX])
  if (found.length === 0) await readPolicy({ database, project_id }, space_id)
  return found.map(({ id, skill, kind, text, supports }): SpaceStatement => {
    return { id: id!, skill: skill!, kind: kind as StatementKind, text: text!, supports: Number(supports) }
  })
}

export async function addFeedback(
  { database, project_id }: Tenant,
  space_id: string,
  { statement_ids, session_id, helped }: { statement_ids: string[]; session_id: string; helped: boolean },
): Promise<void> {
  const ids = [...new Set(statement_ids.map((id) => id.toLowerCase()))]
  const answer = await call(database, ADD_FEEDBACK, project_id, space_id, session_id, ids, helped)
  if (answer === 'no_space') throw notFound('learning_space')
  if (answer === 'no_session') throw notFound('session')
  if (answer === '0') throw notFound('statement')
}

/** Erases some citations of sessions that go, with the statements and versions that rest on them. */
export async function eraseCites({ database, project_id }: Tenant, session_ids: string[]) {
  const answer = await call(database, ERASE_CITES, project_id, session_ids, CITES_AT_ONCE_MAX)
  const [cites, revoked, worded] = answer!.split(',').map(Number) as [number, number, number]
  const counts = { statement_cites: cites, revoked_statements: revoked }
  return { counts, has_all: Math.max(cites, worded) < CITES_AT_ONCE_MAX }
}
