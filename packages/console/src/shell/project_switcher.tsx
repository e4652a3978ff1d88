import { useContext } from 'react'
import { ProjectContext, useAccounts } from '../access/project_context.tsx'
import { ADMIN, signOut } from '../access/service.ts'
import { navigate } from '../address/address.ts'
import { Menu, MenuItem } from '../parts/menu.tsx'
import { say } from '../parts/notice.tsx'

/** Switches between open projects, adds one, signs out. */
export function ProjectSwitcher() {
  const { accounts, change } = useAccounts()
  const project = useContext(ProjectContext)
  const show = (project_id: string) => {
    change({ do: 'show', project_id })
    navigate('/sessions')
  }
  const leave = async () => {
    let left: Awaited<ReturnType<typeof signOut>>
    try {
      left = await signOut(project?.project_id ?? ADMIN)
    } catch (error) {
      // The cookie is still there: nobody may believe to have signed out.
      return say(`Not signed out: ${(error as Error).message}`)
    }
    if (left.end_session_url) return location.assign(left.end_session_url)
    if (project) change({ do: 'close', project_id: project.project_id })
    else change({ do: 'administrate', is_admin: false })
    navigate('/')
  }
  const leaveAdministration = async () => {
    await signOut(ADMIN)
    change({ do: 'administrate', is_admin: false })
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
      {accounts.is_admin && project && (
        <MenuItem onChoose={() => void leaveAdministration()}>Sign out of administration</MenuItem>
      )}
      <MenuItem onChoose={() => void leave()}>Sign out of {project?.project ?? 'administration'}</MenuItem>
    </Menu>
  )
}
