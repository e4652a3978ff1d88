import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type ComponentType, lazy, type ReactElement, Suspense, useEffect, useMemo, useReducer } from 'react'
import { accountsOf, changed, keepActive } from './access/accounts.ts'
import { AccountsContext, type Project, ProjectContext } from './access/project_context.tsx'
import { useRenewal } from './access/renewal.ts'
import { clientFor, readAccess } from './access/service.ts'
import { SignIn } from './access/sign_in.tsx'
import { pathHere, useAddress } from './address/address.ts'
import { FaultBoundary } from './parts/fault_boundary.tsx'
import { Failure, NotFound } from './parts/states.tsx'
import { SessionsPage } from './sessions/sessions_page.tsx'
import { Shell } from './shell/shell.tsx'
import { patiently, ViewLoading } from './shell/view_loading.tsx'

/** A view whose code is loaded when it is first opened, or at once if the page was opened at its address. */
const later = <Props extends object>(load: () => Promise<ComponentType<Props>>, address?: RegExp) => {
  const begun = address?.test(pathHere()) ? load() : undefined
  // Whoever is shown the view is told.
  begun?.catch(() => {})
  let first = begun
  return lazy(async () => ({
    default: await patiently(() => {
      const loaded = first ?? load()
      first = undefined
      return loaded
    }),
  }))
}

const ActivityPage = later(async () => (await import('./activity/activity_page.tsx')).ActivityPage)
const AdminPage = later(async () => (await import('./admin/admin_page.tsx')).AdminPage)
const ComparePage = later(async () => (await import('./compare/compare_page.tsx')).ComparePage)
const PeoplePage = later(async () => (await import('./people/people_page.tsx')).PeoplePage)
const RunsPage = later(async () => (await import('./runs/runs_page.tsx')).RunsPage)
const SearchPage = later(async () => (await import('./search/search_page.tsx')).SearchPage)
const SessionPage = later(
  async () => (await import('./session/session_page.tsx')).SessionPage,
  /^\/sessions\/./,
)
const SpacePage = later(async () => (await import('./spaces/space_page.tsx')).SpacePage)
const SpacesPage = later(async () => (await import('./spaces/spaces_page.tsx')).SpacesPage)
const UserPage = later(async () => (await import('./users/user_page.tsx')).UserPage)
const WebhooksPage = later(async () => (await import('./webhooks/webhooks_page.tsx')).WebhooksPage)
const UsersPage = later(async () => (await import('./users/users_page.tsx')).UsersPage)

const AWAY_EVERY_MS = 2_000

/** The whole page: first it asks what this browser has signed in to. */
export function App() {
  const access = useQuery({
    queryKey: ['access'],
    queryFn: readAccess,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
    // With the service away, nobody should have to press a button when it is back.
    refetchInterval: ({ state }) => (state.status === 'error' ? AWAY_EVERY_MS : false),
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
              <Suspense fallback={<ViewLoading />}>
                <View />
              </Suspense>
            </FaultBoundary>
          </Shell>
        </ProjectContext>
      )}
    </AccountsContext>
  )
}

function View(): ReactElement {
  const { path } = useAddress()
  const [, view = '', id] = path.split('/')
  const name = id && decodeURIComponent(id)
  switch (view) {
    case '':
      return <SessionsPage />
    case 'compare':
      return <ComparePage />
    case 'people':
      return <PeoplePage />
    case 'runs':
      return <RunsPage />
    case 'search':
      return <SearchPage />
    case 'sessions':
      return name ? <SessionPage key={name} id={name} /> : <SessionsPage />
    case 'spaces':
      return name ? <SpacePage key={name} id={name} /> : <SpacesPage />
    case 'users':
      return name ? <UserPage key={name} identifier={name} /> : <UsersPage />
    case 'webhooks':
      return <WebhooksPage />
    case 'activity':
      return <ActivityPage />
    case 'admin':
      return <AdminPage />
    default:
      return <NotFound />
  }
}
