import { type ReactNode, useContext, useState } from 'react'
import { ProjectContext, useAccounts } from '../access/project_context.tsx'
import { useAddress } from '../address/address.ts'
import { Link } from '../address/link.tsx'
import { DroppedFiles } from '../importing/dropped_files.tsx'
import { Notice } from '../parts/notice.tsx'
import { SearchEverywhere } from '../search/search_everywhere.tsx'
import { mayAdministrate } from '../webhooks/may_administrate.ts'
import { ProjectSwitcher } from './project_switcher.tsx'
import { ServiceWatch } from './service_watch.tsx'
import { ShortcutHelp } from './shortcut_help.tsx'
import { useShortcuts } from './shortcuts.ts'
import { ThemeSwitch } from './theme_switch.tsx'

const VIEWS = [
  { to: '/sessions', name: 'Sessions', key: 's', mark: '§' },
  { to: '/runs', name: 'Runs', key: 'r', mark: '»' },
  { to: '/users', name: 'Users', key: 'u', mark: '@' },
  { to: '/spaces', name: 'Spaces', key: 'l', mark: '¶' },
  { to: '/people', name: 'People', key: 'p', mark: '&' },
  { to: '/webhooks', name: 'Webhooks', key: 'w', mark: '↗' },
  { to: '/activity', name: 'Activity', key: 'a', mark: '∿' },
  { to: '/admin', name: 'Keys', key: 'k', mark: '#' },
] as const

/** The frame of every view: navigation and the current project. */
export function Shell({ children }: { children: ReactNode }) {
  const { path } = useAddress()
  const { accounts } = useAccounts()
  const project = useContext(ProjectContext)
  const [helps, setHelps] = useState(false)
  useShortcuts(VIEWS, () => setHelps(true))
  const knows_people = project && (project.scopes.includes('admin') || project.person !== undefined)
  const views = VIEWS.filter(({ to }) => {
    if (to === '/admin') return accounts.is_admin
    if (to === '/webhooks') return mayAdministrate(accounts, project)
    return to === '/people' ? knows_people : project
  })
  const active = path === '/' ? '/sessions' : `/${path.split('/')[1]}`
  return (
    <div className="shell">
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <header className="rail">
        <Link to="/sessions" className="wordmark" aria-label="Annals, all sessions">
          Annals
        </Link>
        {project && <SearchEverywhere />}
        <nav aria-label="Views">
          {views.map(({ to, name, mark, key }) => (
            <Link
              key={to}
              to={to}
              aria-current={active === to ? 'page' : undefined}
              title={`${name} (g ${key})`}
            >
              <span className="mark" aria-hidden="true">
                {mark}
              </span>
              {name}
            </Link>
          ))}
        </nav>
        <div className="rail-end">
          <ProjectSwitcher />
          <div className="rail-tools">
            <ThemeSwitch />
            <button
              type="button"
              className="button is-quiet"
              onClick={() => setHelps(true)}
              aria-label="Keyboard shortcuts"
              title="Keyboard shortcuts (?)"
            >
              ?
            </button>
          </div>
        </div>
      </header>
      <main id="content" className="content" tabIndex={0}>
        {children}
        <ServiceWatch />
        {project && <DroppedFiles project={project} />}
        <Notice />
      </main>
      <ShortcutHelp is_open={helps} onClose={() => setHelps(false)} />
    </div>
  )
}
