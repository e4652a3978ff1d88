import { type Annals, AnnalsError } from '@annals/client'

/** As many users as one page holds: beyond that, a list shows the beginning of the id. */
const USERS_MAX = 200

/** The identifiers of users by their ids, as far as one page of users tells them. Never fails a list for a name. */
export async function knownUsers(annals: Annals): Promise<Map<string, string>> {
  const names = new Map<string, string>()
  try {
    const { items } = await annals.users.list({ time_desc: true, limit: USERS_MAX }).page()
    for (const { id, identifier } of items) names.set(id, identifier)
  } catch (error) {
    if (!(error instanceof AnnalsError)) throw error
  }
  return names
}

/** How a list names a user: where the identifier is not known, by the beginning of the id. */
export async function userNames(annals: Annals): Promise<(user_id: string | null) => string> {
  const names = await knownUsers(annals)
  return (user_id) => (user_id === null ? '-' : (names.get(user_id) ?? `${user_id.slice(0, 13)}…`))
}
