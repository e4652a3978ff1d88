import type { Statement, StatementChange } from '@annals/client'
import type { KeyboardEvent, SubmitEvent } from 'react'

const KINDS = ['procedure', 'pitfall', 'fact', 'preference'] as const
const TEXT_LENGTH_MAX = 2_000

/** Changes what a statement says. Ctrl Enter saves, Escape leaves it as it was. */
export function StatementEditor(props: {
  statement: Statement
  is_saving: boolean
  onSave: (change: StatementChange) => void
  onClose: () => void
}) {
  const { statement, is_saving, onSave, onClose } = props
  const save = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const text = String(form.get('text')).trim()
    const kind = String(form.get('kind')) as Statement['kind']
    // Saving pins a statement; nothing is saved where nothing was changed.
    if (text === statement.text && kind === statement.kind) onClose()
    else onSave({ text, kind })
  }
  const press = (event: KeyboardEvent<HTMLFormElement>) => {
    if (event.key === 'Escape') onClose()
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit()
  }
  return (
    <form className="statement-editor" onSubmit={save} onKeyDown={press}>
      <label className="field">
        <span>Statement</span>
        <textarea
          name="text"
          rows={3}
          required
          maxLength={TEXT_LENGTH_MAX}
          defaultValue={statement.text}
          ref={(field) => field?.focus()}
        />
      </label>
      <label className="field">
        <span>Kind</span>
        <select name="kind" defaultValue={statement.kind}>
          {KINDS.map((kind) => (
            <option key={kind}>{kind}</option>
          ))}
        </select>
      </label>
      <div className="dialog-actions">
        <button type="button" className="button" onClick={onClose}>
          Cancel
        </button>
        <button type="submit" className="button is-primary" disabled={is_saving}>
          Save
        </button>
      </div>
    </form>
  )
}
