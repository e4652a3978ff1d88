import { type FormEvent, useState } from 'react'
import { useProject } from '../access/project_context.tsx'
import { navigate } from '../address/address.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Menu, MenuItem } from '../parts/menu.tsx'
import { say } from '../parts/notice.tsx'

/** A view that was given a name: its address has all of it. */
interface SavedView {
  name: string
  path: string
}

const VIEWS_MAX = 50
const NAME_MAX = 80

/** The views that were saved in this browser for a project, and saving another one. */
export function SavedViews({ path }: { path: string }) {
  const { project_id } = useProject()
  const key = `annals.views.${project_id}`
  const [views, setViews] = useState(() => read(key))
  const [names, setNames] = useState(false)
  const keep = (next: SavedView[]) => {
    localStorage.setItem(key, JSON.stringify(next))
    setViews(next)
  }
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const name = String(new FormData(event.currentTarget).get('name')).trim()
    if (name === '') return
    keep([...views.filter((view) => view.name !== name), { name, path }].slice(-VIEWS_MAX))
    setNames(false)
    say(`Saved the view “${name}” in this browser.`)
  }
  const current = views.find((view) => view.path === path)
  return (
    <>
      <Menu label="Views" content={current?.name ?? 'Views'} className="views-menu">
        {views.map((view) => (
          <MenuItem key={view.name} onChoose={() => navigate(view.path)}>
            {view.name}
          </MenuItem>
        ))}
        <MenuItem onChoose={() => setNames(true)}>Save this view…</MenuItem>
        {current && (
          <MenuItem onChoose={() => keep(views.filter((view) => view !== current))}>
            Forget “{current.name}”
          </MenuItem>
        )}
      </Menu>
      <Dialog title="Save this view" is_open={names} onClose={() => setNames(false)}>
        <form className="confirm" onSubmit={save}>
          <label className="field">
            <span>Name</span>
            <input name="name" maxLength={NAME_MAX} autoComplete="off" defaultValue={current?.name} />
          </label>
          <p className="hint">
            Filter, time and columns are in the address: to share the view, share the address.
          </p>
          <div className="dialog-actions">
            <button type="submit" className="button is-primary">
              Save
            </button>
          </div>
        </form>
      </Dialog>
    </>
  )
}

function read(key: string): SavedView[] {
  try {
    const views: unknown = JSON.parse(localStorage.getItem(key) ?? '[]')
    return Array.isArray(views)
      ? views.filter(({ name, path }) => name && String(path).startsWith('/sessions'))
      : []
  } catch {
    return []
  }
}
