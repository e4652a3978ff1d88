import { isDeepStrictEqual } from 'node:util'
import type { AnnalsApi } from './annals_api.ts'
import type { RecordedRun } from './record.ts'
import type { Json, JsonObject } from './runs.ts'

/** A small page, so that a walk has many. */
const USER_PAGE = 4
const FILTER_PAGE = 20

/**
 * Lists the sessions of every user of the replay, oldest first, in small pages. Other sessions of these users
 * may be there from before: only the replay's own are counted, and others must belong to the user as well.
 * Gives the number of sessions found.
 */
export async function checkListsByUser(
  api: AnnalsApi,
  recorded: RecordedRun[],
  differences: string[],
): Promise<number> {
  let found = 0
  const userIds = new Map<string, string>()
  for (const user of new Set(recorded.map(({ run }) => run.user))) {
    const expected = recorded.filter(({ run }) => run.user === user)
    const user_id = expected[0]!.user_id!
    const place = `The list of user ${user}`
    const namesake = userIds.get(user_id)
    if (namesake !== undefined) differences.push(`Users ${namesake} and ${user} share the id ${user_id}`)
    userIds.set(user_id, user)
    const listed = await collect(api.sessions({ user, limit: USER_PAGE }))
    for (const session of listed) {
      if (session.user_id !== user_id) differences.push(`${place} has session ${session.id} of another user`)
    }
    found += compareLists(place, listed, expected, recorded, differences)
  }
  return found
}

/** Lists the sessions whose configs contain `filter`, newest first. Gives the number found of the replay's. */
export async function checkListByConfigs(
  api: AnnalsApi,
  filter: JsonObject,
  recorded: RecordedRun[],
  differences: string[],
): Promise<number> {
  const text = JSON.stringify(filter)
  const place = `The list with ${text}`
  const expected = recorded.filter(({ run }) => contains(run.configs, filter)).reverse()
  const query = { filter_by_configs: text, time_desc: true, limit: FILTER_PAGE }
  const listed = await collect(api.sessions(query))
  for (const session of listed) {
    if (!contains(session.configs, filter))
      differences.push(`${place} has session ${session.id}, which does not match`)
  }
  return compareLists(place, listed, expected, recorded, differences)
}

/** Compares the replay's sessions in a list, each with its configs, with those that should be there in that order. */
function compareLists(
  place: string,
  listed: Array<{ id: string; configs: JsonObject }>,
  expected: RecordedRun[],
  recorded: RecordedRun[],
  differences: string[],
): number {
  const byId = new Map(recorded.map((one) => [one.session_id, one]))
  const ours = listed.filter(({ id }) => byId.has(id))
  const ids = ours.map(({ id }) => id)
  const expectedIds = expected.map(({ session_id }) => session_id)
  for (const id of expectedIds.filter((id) => !ids.includes(id)))
    differences.push(`${place} lacks session ${id}`)
  for (const id of ids.filter((id) => !expectedIds.includes(id))) {
    differences.push(`${place} has session ${id}, which does not belong there`)
  }
  const sameMembers = ids.length === expectedIds.length && new Set(ids).size === ids.length
  if (!sameMembers)
    differences.push(`${place} has ${ids.length} sessions of this replay, not ${expectedIds.length}`)
  else if (!isDeepStrictEqual(ids, expectedIds))
    differences.push(`${place} is not in the order of created_at`)
  for (const { id, configs } of ours) {
    if (!isDeepStrictEqual(configs, byId.get(id)!.run.configs)) {
      differences.push(`${place} shows session ${id} with other configs`)
    }
  }
  return ours.length
}

/** The recorded runs in the order of a list that begins with the oldest session. */
export function oldestFirst(recorded: RecordedRun[]): RecordedRun[] {
  // Both have one length and one alphabet, so their order as text is the order of what they stand for.
  const position = (one: RecordedRun) => `${one.created_at} ${one.session_id}`
  return recorded.toSorted((a, b) => (position(a) < position(b) ? -1 : 1))
}

/** What `filter_by_configs` asks of a session's configs: PostgreSQL's `value @> filter`. */
function contains(value: Json | undefined, filter: Json): boolean {
  if (Array.isArray(filter)) {
    return Array.isArray(value) && filter.every((wanted) => value.some((item) => contains(item, wanted)))
  }
  if (typeof filter === 'object' && filter !== null) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
    return Object.entries(filter).every(([name, wanted]) => contains(value[name], wanted))
  }
  return value === filter
}

async function collect<Item>(items: AsyncGenerator<Item>): Promise<Item[]> {
  const all: Item[] = []
  for await (const item of items) all.push(item)
  return all
}
