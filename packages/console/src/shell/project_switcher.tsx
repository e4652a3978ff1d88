import { useContext } from 'react'
import { ProjectContext, useAccounts } from '../access/project_context.tsx'
import { ask } from '../access/service.ts'
import { navigate } from '../address/address.ts'
import { Menu, MenuItem } from '../parts/menu.tsx'

/** Switches between open projects, adds one, signs out. */
export function ProjectSwitcher() {
  const { accounts, change } = useAccounts()
  const project = useContext(ProjectContext)
  const show = (project_id: string) => {
    change({ do: 'show', project_id })
    navigate('/sessions')
  }
  const signOut = () => {
    // This revokes a key that came from a sign-in link; other keys are left alone.
    if (project) void ask('/console/data/sign_out', { method: 'POST', token: project.token }).catch(() => {})
    if (project) change({ do: 'close', project_id: project.project_id })
    else change({ do: 'administrate', admin_token: undefined })
    navigate('/')
  }
  const others = accounts.open.filter(({ project_id }) => project_id !== project?.project_id)
  return (
    <Menu
      label={`Project ${project?.project ?? 'none'}`}
      className="switcher"
      content={
        <>
          <span className="switcher-name">{project?.project ?? 'Administration'}</span>
          {project && !project.may_write && <span className="tag">read only</span>}
        </>
      }
    >
      {others.map((other) => (
        <MenuItem key={other.project_id} onChoose={() => show(other.project_id)}>
          Open {other.project}
        </MenuItem>
      ))}
      <MenuItem onChoose={() => navigate('/sessions?sign_in=1')}>Add a project or the admin token…</MenuItem>
      {accounts.admin_token && project && (
        <MenuItem onChoose={() => change({ do: 'administrate', admin_token: undefined })}>
          Forget the admin token
        </MenuItem>
      )}
      <MenuItem onChoose={signOut}>Sign out of {project?.project ?? 'administration'}</MenuItem>
    </Menu>
  )
}
