import { useState } from 'react'

/** Copies a text, which is computed on demand. */
export function CopyButton({
  text,
  children,
  className = 'button is-small',
}: {
  text: () => string
  children: string
  className?: string
}) {
  const [is_done, setDone] = useState(false)
  const copy = async () => {
    await navigator.clipboard.writeText(text())
    setDone(true)
    setTimeout(() => setDone(false), 1_500)
  }
  return (
    <button type="button" className={className} onClick={() => void copy()}>
      {is_done ? 'Copied' : children}
    </button>
  )
}
