import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useEffect, useMemo, useReducer } from 'react'
import { changed, keepAccounts, readAccounts } from './access/accounts.ts'
import { AccountsContext, type Project, ProjectContext } from './access/project_context.tsx'
import { clientFor } from './access/service.ts'
import { SignIn } from './access/sign_in.tsx'
import { ActivityPage } from './activity/activity_page.tsx'
import { useAddress } from './address/address.ts'
import { AdminPage } from './admin/admin_page.tsx'
import { FaultBoundary } from './parts/fault_boundary.tsx'
import { NotFound } from './parts/states.tsx'
import { SessionPage } from './session/session_page.tsx'
import { SessionsPage } from './sessions/sessions_page.tsx'
import { Shell } from './shell/shell.tsx'
import { SpacePage } from './spaces/space_page.tsx'
import { SpacesPage } from './spaces/spaces_page.tsx'
import { UserPage } from './users/user_page.tsx'
import { UsersPage } from './users/users_page.tsx'

/** The whole page: sign-in, and the view of the address. */
export function App() {
  const [accounts, change] = useReducer(changed, undefined, readAccounts)
  const queries = useQueryClient()
  useEffect(() => keepAccounts(accounts), [accounts])
  const active = accounts.open.find(({ project_id }) => project_id === accounts.active)
  const project = useMemo<Project | undefined>(
    () =>
      active && { ...active, annals: clientFor(active.token), may_write: active.scopes.includes('write') },
    [active],
  )
  // Data read with a token is dropped when the tab signs out.
  useEffect(() => {
    if (accounts.open.length === 0) queries.clear()
  }, [accounts.open.length, queries])
  const value = useMemo(() => ({ accounts, change }), [accounts])
  const { path, query } = useAddress()
  const signs_in = query.has('sign_in') || (!project && !(accounts.admin_token && path.startsWith('/admin')))
  return (
    <AccountsContext value={value}>
      {signs_in || location.hash.startsWith('#code=') ? (
        <SignIn />
      ) : (
        <ProjectContext value={project}>
          <Shell>
            <FaultBoundary key={`${project?.project_id} ${path}`}>
              <View />
            </FaultBoundary>
          </Shell>
        </ProjectContext>
      )}
    </AccountsContext>
  )
}

function View(): ReactNode {
  const { path } = useAddress()
  const [, view = '', id] = path.split('/')
  const name = id && decodeURIComponent(id)
  switch (view) {
    case '':
      return <SessionsPage />
    case 'sessions':
      return name ? <SessionPage key={name} id={name} /> : <SessionsPage />
    case 'spaces':
      return name ? <SpacePage key={name} id={name} /> : <SpacesPage />
    case 'users':
      return name ? <UserPage key={name} identifier={name} /> : <UsersPage />
    case 'activity':
      return <ActivityPage />
    case 'admin':
      return <AdminPage />
    default:
      return <NotFound />
  }
}
