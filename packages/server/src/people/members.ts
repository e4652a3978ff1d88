import { AnnalsError, notFound } from '@annals/kits/errors.js'
import { newId } from '@annals/kits/ids.js'
import type { Database, Queryable, Tenant } from '@annals/kits/postgres/database.js'
import { isForeignKeyViolation } from '@annals/kits/postgres/database_errors.js'
import { audited } from '../projects/audit.js'
import type { Role } from '../projects/tokens/token.js'
import {
  CHANGE_MEMBER,
  FIND_ADMINS,
  INVITE_MEMBER,
  LIST_MEMBERS,
  LOCK_ADMINS,
  REMOVE_MEMBER,
  REVOKE_KEYS_OF_MEMBER,
} from './member_queries.js'

export async function listMembers({ database, project_id }: Tenant): Promise<string[]> {
  return (await database.query(LIST_MEMBERS, [project_id])).map(({ json }) => json!)
}

/**
 * Gives whoever signs in with a verified address a role. The address is only used until then: from the first sign-in on,
 * the member is who the issuer says it is. @throws AnnalsError member_exists, project_not_found
 */
export async function inviteMember(
  { database, project_id }: Tenant<Database>,
  actor: string,
  address: string,
  role: Role,
): Promise<string> {
  const email = address.toLowerCase()
  return audited(database, actor, async (connection) => {
    const [row] = await connection.query(INVITE_MEMBER, [newId(), project_id, email, role])
    if (!row) throw new AnnalsError('member_exists')
    return { act: { action: 'member.invite', project_id, details: { email, role } }, result: row.json! }
  }).catch((error: unknown) => {
    throw isForeignKeyViolation(error) ? notFound('project') : error
  })
}

/** @throws AnnalsError member_not_found, last_admin */
export async function changeMember(
  { database, project_id }: Tenant<Database>,
  actor: string,
  member_id: string,
  role: Role,
): Promise<string> {
  return audited(database, actor, (connection) =>
    keepsAnAdmin(connection, project_id, async () => {
      const [row] = await connection.query(CHANGE_MEMBER, [project_id, member_id, role])
      if (!row) throw notFound('member')
      return { act: { action: 'member.change', project_id, details: { member_id, role } }, result: row.json! }
    }),
  )
}

/** Ends the member's sessions and personal tokens, too. @throws AnnalsError member_not_found, last_admin */
export async function removeMember(
  { database, project_id }: Tenant<Database>,
  actor: string,
  member_id: string,
): Promise<void> {
  await audited(database, actor, (connection) =>
    keepsAnAdmin(connection, project_id, async () => {
      const [row] = await connection.query(REMOVE_MEMBER, [project_id, member_id])
      if (!row) throw notFound('member')
      await connection.query(REVOKE_KEYS_OF_MEMBER, [project_id, member_id])
      const details = { member_id, email: row.email! }
      return { act: { action: 'member.remove', project_id, details }, result: undefined }
    }),
  )
}

/**
 * Does what may take a project's last administrator away, and refuses it then. Of two who remove each other, the second
 * waits for the first, and finds out that it is the last. @throws AnnalsError last_admin
 */
async function keepsAnAdmin<T>(
  connection: Queryable,
  project_id: string,
  change: () => Promise<T>,
): Promise<T> {
  const before = await connection.query(LOCK_ADMINS, [project_id])
  const result = await change()
  if (before.length > 0 && (await connection.query(FIND_ADMINS, [project_id])).length === 0)
    throw new AnnalsError('last_admin')
  return result
}
