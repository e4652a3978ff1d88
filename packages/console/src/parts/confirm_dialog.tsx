import { type FormEvent, type ReactNode, useState } from 'react'
import { Dialog } from './dialog.tsx'

/** Asks before a permanent deletion: lists what goes, and requires its name to be typed. */
export function ConfirmDialog(props: {
  title: string
  is_open: boolean
  /** What must be typed. */
  phrase: string
  action: string
  /** Undefined while the list is not known yet. */
  children: ReactNode
  /** `say` reports the progress of a long deletion. */
  run: (say: (progress: string) => void) => Promise<void>
  onClose: () => void
}) {
  const { title, is_open, phrase, action, children, run, onClose } = props
  const [typed, setTyped] = useState('')
  const [failure, setFailure] = useState<string>()
  const [is_busy, setBusy] = useState(false)
  const [progress, setProgress] = useState<string>()
  const close = () => {
    setTyped('')
    setFailure(undefined)
    onClose()
  }
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    if (typed !== phrase) return setFailure(`Type ${phrase} to confirm.`)
    setBusy(true)
    try {
      await run(setProgress)
      close()
    } catch (error) {
      setFailure((error as Error).message)
    } finally {
      setBusy(false)
      setProgress(undefined)
    }
  }
  return (
    <Dialog title={title} is_open={is_open} onClose={close}>
      <form onSubmit={(event) => void submit(event)} className="confirm">
        {children}
        <label className="field">
          <span>
            Type <code>{phrase}</code> to confirm
          </span>
          <input
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
            autoComplete="off"
            spellCheck={false}
            autoFocus
          />
        </label>
        <p className="failure-line" role="alert">
          {failure}
        </p>
        {progress && (
          <p role="status" className="mono">
            {progress}
          </p>
        )}
        <div className="dialog-actions">
          <button type="button" className="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" className="button is-danger" disabled={typed !== phrase || is_busy}>
            {is_busy ? 'Erasing…' : action}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
