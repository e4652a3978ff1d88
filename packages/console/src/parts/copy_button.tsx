import { useState } from 'react'
import { copy } from './clipboard.ts'

/** Copies a text, which is computed on demand. `what` is copied, as it is told: the link, the entry as JSON. */
export function CopyButton(props: {
  what: string
  text: () => string
  children: string
  className?: string
}) {
  const { what, text, children, className = 'button is-small' } = props
  const [is_done, setDone] = useState(false)
  const run = async () => {
    if (!(await copy(what, text()))) return
    setDone(true)
    setTimeout(() => setDone(false), 1_500)
  }
  return (
    <button type="button" className={className} onClick={() => void run()}>
      {is_done ? 'Copied' : children}
    </button>
  )
}
