import { type Annals, AnnalsError } from '@annals/client'

/** One page of users: for others, a list shows the beginning of the id. */
const USERS_MAX = 200

/** The identifiers of users by id, as far as one page of users has them. Never fails a list because of a name. */
export async function knownUsers(annals: Annals): Promise<Map<string, string>> {
  const names = new Map<string, string>()
  try {
    const { items } = await annals.users.list({ time_desc: true, limit: USERS_MAX }).page()
    for (const { id, identifier } of items) names.set(id, identifier)
  } catch (error) {
    // Without an answer, the list itself would wait as long once more.
    if (!(error instanceof AnnalsError) || error.status === 0) throw error
  }
  return names
}

/** A user's name in a list: the identifier, or the beginning of the id if that is unknown. */
export async function userNames(annals: Annals): Promise<(user_id: string | null) => string> {
  const names = await knownUsers(annals)
  return (user_id) => (user_id === null ? '-' : (names.get(user_id) ?? `${user_id.slice(0, 13)}…`))
}
