import { type ReactNode, useEffect, useId, useRef } from 'react'

/** A modal dialog, the browser's own: it keeps the focus and closes with Escape. */
export function Dialog(props: { title: string; is_open: boolean; onClose: () => void; children: ReactNode }) {
  const { title, is_open, onClose, children } = props
  const element = useRef<HTMLDialogElement>(null)
  const title_id = useId()
  useEffect(() => {
    const dialog = element.current
    if (is_open && dialog && !dialog.open) {
      dialog.showModal()
      // The browser would focus the close button first.
      dialog.querySelector<HTMLElement>('input, textarea')?.focus()
    }
    if (!is_open) dialog?.close()
  }, [is_open])
  return (
    <dialog ref={element} className="dialog" aria-labelledby={title_id} onClose={onClose}>
      {is_open && (
        <>
          <header>
            <h2 id={title_id}>{title}</h2>
            <button type="button" className="button is-quiet" onClick={onClose} aria-label="Close">
              ✕
            </button>
          </header>
          {children}
        </>
      )}
    </dialog>
  )
}
