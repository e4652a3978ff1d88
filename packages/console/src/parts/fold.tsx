import { type ReactNode, useId, useState } from 'react'

/** On a phone, what is in it appears only when its button is pressed; elsewhere it is always there. */
export function Fold({ label, children }: { label: string; children: ReactNode }) {
  const [is_open, setOpen] = useState(false)
  const id = useId()
  return (
    <>
      <button
        type="button"
        className="button is-small fold-toggle"
        aria-expanded={is_open}
        aria-controls={id}
        onClick={() => setOpen(!is_open)}
      >
        {label} <span aria-hidden="true">{is_open ? '▴' : '▾'}</span>
      </button>
      <div id={id} className={`fold ${is_open ? 'is-open' : ''}`}>
        {children}
      </div>
    </>
  )
}
