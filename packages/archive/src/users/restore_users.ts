import type { ExportLine } from '../transfer/export_line.js'
import { jsonOf, type RestoreContext, type Tallies, tally } from '../transfer/restore_context.js'
import { COUNT_NEW_USERS, RESTORE_USERS } from './restore_user_queries.js'

/** Restores users by identifier: an existing user stays as it is, whatever its id. */
export async function restoreUsers(
  { database, project_id, dry_run }: RestoreContext,
  lines: ExportLine[],
): Promise<Tallies> {
  const [row] = await database.query(dry_run ? COUNT_NEW_USERS : RESTORE_USERS, [project_id, jsonOf(lines)])
  return { users: tally(lines.length, Number(row!.stored)) }
}
