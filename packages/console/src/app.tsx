import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useEffect, useMemo, useReducer } from 'react'
import { accountsOf, changed, keepActive } from './access/accounts.ts'
import { AccountsContext, type Project, ProjectContext } from './access/project_context.tsx'
import { useRenewal } from './access/renewal.ts'
import { clientFor, readAccess } from './access/service.ts'
import { SignIn } from './access/sign_in.tsx'
import { ActivityPage } from './activity/activity_page.tsx'
import { useAddress } from './address/address.ts'
import { AdminPage } from './admin/admin_page.tsx'
import { FaultBoundary } from './parts/fault_boundary.tsx'
import { Failure, NotFound } from './parts/states.tsx'
import { SessionPage } from './session/session_page.tsx'
import { SessionsPage } from './sessions/sessions_page.tsx'
import { Shell } from './shell/shell.tsx'
import { SpacePage } from './spaces/space_page.tsx'
import { SpacesPage } from './spaces/spaces_page.tsx'
import { UserPage } from './users/user_page.tsx'
import { UsersPage } from './users/users_page.tsx'

/** The whole page: first it asks what this browser has signed in to. */
export function App() {
  const access = useQuery({
    queryKey: ['access'],
    queryFn: readAccess,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
  })
  if (access.isError) return <Failure is_page error={access.error} onRetry={() => void access.refetch()} />
  return access.data ? <SignedIn access={access.data} /> : null
}

/** Sign-in, or the view of the address. */
function SignedIn({ access }: { access: Awaited<ReturnType<typeof readAccess>> }) {
  const [accounts, change] = useReducer(changed, access, accountsOf)
  const queries = useQueryClient()
  useEffect(() => keepActive(accounts), [accounts])
  useRenewal(accounts.open.length > 0 || accounts.is_admin)
  const active = accounts.open.find(({ project_id }) => project_id === accounts.active)
  const project = useMemo<Project | undefined>(
    () =>
      active && {
        ...active,
        annals: clientFor(active.project_id),
        may_write: active.scopes.includes('write'),
      },
    [active],
  )
  // Data read in a session is dropped when the browser signs out.
  useEffect(() => {
    if (accounts.open.length === 0)
      queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'access' })
  }, [accounts.open.length, queries])
  const value = useMemo(() => ({ accounts, change }), [accounts])
  const { path, query } = useAddress()
  const signs_in = query.has('sign_in') || (!project && !(accounts.is_admin && path.startsWith('/admin')))
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
