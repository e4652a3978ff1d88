import type { Account, Accounts } from '../access/accounts.ts'

/** Whether this browser may see how a project is set up: as one of its administrators, or as the operator. */
export function mayAdministrate({ is_admin }: Accounts, project: Account | undefined): boolean {
  return project !== undefined && (is_admin || project.scopes.includes('admin'))
}
