import { useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { useProject } from '../access/project_context.tsx'
import { navigate } from '../address/address.ts'
import { isObject, parsedText } from '../json/exact_json.ts'
import { Dialog } from '../parts/dialog.tsx'

/** Asks for a learning space's user and initial meta. */
export function NewSpaceDialog({
  is_open,
  user,
  onClose,
}: {
  is_open: boolean
  user: string | undefined
  onClose: () => void
}) {
  const { annals, project_id } = useProject()
  const queries = useQueryClient()
  const [failure, setFailure] = useState<string>()
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const meta = parsedText(String(form.get('meta') || '{}'))
    if (!isObject(meta)) return setFailure('Meta must be a JSON object, such as {"topic": "refunds"}.')
    const name = String(form.get('name')).trim()
    try {
      const space = await annals.learningSpaces.create({
        user: String(form.get('user')).trim() || undefined,
        meta: name === '' ? meta : { name, ...meta },
      })
      void queries.invalidateQueries({ queryKey: [project_id, 'spaces'] })
      onClose()
      navigate(`/spaces/${space.id}`)
    } catch (error) {
      setFailure((error as Error).message)
    }
  }
  return (
    <Dialog title="New learning space" is_open={is_open} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)} className="confirm">
        <label className="field">
          <span>Name</span>
          <input name="name" autoComplete="off" maxLength={200} />
        </label>
        <label className="field">
          <span>User (empty: the whole project)</span>
          <input name="user" defaultValue={user} autoComplete="off" spellCheck={false} />
        </label>
        <label className="field">
          <span>Meta (a JSON object)</span>
          <textarea name="meta" className="mono" rows={5} defaultValue="{}" spellCheck={false} />
        </label>
        <p className="failure-line" role="alert">
          {failure}
        </p>
        <div className="dialog-actions">
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="button is-primary">
            Create
          </button>
        </div>
      </form>
    </Dialog>
  )
}
