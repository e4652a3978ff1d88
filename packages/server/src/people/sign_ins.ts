import { newId } from '@annals/kits/ids.js'
import type { Database, Queryable } from '@annals/kits/postgres/database.js'
import type { Identity, Issuer } from './issuer.js'
import {
  BEGIN_CHECK,
  CHECK_S,
  END_GROUP_ROLES,
  END_KEYS_OF_PERSON,
  END_OWNER_SESSIONS,
  FIND_MEMBERSHIPS,
  FIND_NAMED_PROJECTS,
  FIND_PEOPLE_TO_CHECK,
  FORGET_PERSON,
  KEEP_GROUP_ROLE,
  KEEP_PERSON,
  REMOVE_MEMBERS_WITHOUT_ROLE,
  TAKE_INVITATIONS,
} from './sign_in_queries.js'

/** For how long a role of a group holds: if the issuer can be asked again and does not answer, and if it cannot be asked. */
const GROUP_ROLE_S = { asked: 3_600, not_asked: 300 }

export interface Memberships {
  person_id: string
  is_owner: boolean
  members: Array<{ member_id: string; project_id: string }>
}

/** Stores the issuer's claims: accepts invitations of the person's address, and sets the roles of their groups. */
export async function keepIdentity(database: Database, identity: Identity): Promise<Memberships> {
  const { issuer, subject, email, is_owner, refresh_token } = identity
  return database.transaction(async (connection) => {
    const token = refresh_token === undefined ? null : Buffer.from(refresh_token)
    const check_after = token && new Date(Date.now() + CHECK_S * 1_000).toISOString()
    const person = [newId(), issuer, subject, email, is_owner, token, check_after]
    const [row] = await connection.query(KEEP_PERSON, person)
    await connection.query(TAKE_INVITATIONS, [issuer, subject, email])
    await keepGroupRoles(connection, identity)
    if (!is_owner) await connection.query(END_OWNER_SESSIONS, [row!.id!])
    const members = await connection.query(FIND_MEMBERSHIPS, [issuer, subject])
    return {
      person_id: row!.id!,
      is_owner,
      members: members.map(({ id, project_id }) => ({ member_id: id!, project_id: project_id! })),
    }
  })
}

async function keepGroupRoles(
  connection: Queryable,
  { issuer, subject, email, roles, refresh_token }: Identity,
): Promise<void> {
  const named = await connection.query(FIND_NAMED_PROJECTS, [[...roles.keys()]])
  const seconds = refresh_token === undefined ? GROUP_ROLE_S.not_asked : GROUP_ROLE_S.asked
  for (const { id, name } of named) {
    const role = (roles.get(name!) ?? roles.get(id!))!
    await connection.query(KEEP_GROUP_ROLE, [newId(), id!, issuer, subject, email, role, seconds])
  }
  await connection.query(END_GROUP_ROLES, [issuer, subject, named.map(({ id }) => id!)])
  await connection.query(REMOVE_MEMBERS_WITHOUT_ROLE, [issuer, subject])
}

/**
 * Asks the issuer again about those who have something open, so that a group that was taken away, or an account that is
 * gone, takes effect within 5 minutes. `onError`: told of an issuer that did not answer.
 */
export async function checkPeople(
  database: Database,
  issuer: Pick<Issuer, 'askAgain'>,
  onError: (error: unknown) => void,
): Promise<void> {
  const check = async (id: string) => {
    const [person] = await database.query(BEGIN_CHECK, [id])
    if (!person) return
    try {
      const { subject, refresh_token } = person as { subject: string; refresh_token: string }
      const identity = await issuer.askAgain({ subject, refresh_token })
      if (identity) await keepIdentity(database, identity)
      else await endPerson(database, { id, issuer: person.issuer!, subject })
    } catch (error) {
      onError(error)
    }
  }
  for (;;) {
    const due = await database.query(FIND_PEOPLE_TO_CHECK, [])
    if (due.length === 0) return
    // One after another, a thousand would wait longer than they may.
    await Promise.all(due.map(({ id }) => check(id!)))
  }
}

/** Ends all that somebody has open. Invitations stay: the next sign-in finds them, if there is one. */
async function endPerson(
  database: Database,
  { id, issuer, subject }: { id: string; issuer: string; subject: string },
): Promise<void> {
  await database.transaction(async (connection) => {
    await connection.query(END_KEYS_OF_PERSON, [issuer, subject])
    await connection.query(END_GROUP_ROLES, [issuer, subject, []])
    await connection.query(END_OWNER_SESSIONS, [id])
    await connection.query(FORGET_PERSON, [id])
  })
}
