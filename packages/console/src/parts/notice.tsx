import { useEffect, useState } from 'react'

const SHOWN_MS = 2_500
const SAID = 'annals:said'

/** Tells the reader what was just done, for a moment. */
export function say(text: string): void {
  dispatchEvent(new CustomEvent(SAID, { detail: text }))
}

/** Shows what `say` says; once on the page. */
export function Notice() {
  const [said, setSaid] = useState<{ text: string }>()
  useEffect(() => {
    const listener = (event: Event) => setSaid({ text: String((event as CustomEvent).detail) })
    addEventListener(SAID, listener)
    return () => removeEventListener(SAID, listener)
  }, [])
  useEffect(() => {
    if (!said) return
    const timer = setTimeout(() => setSaid(undefined), SHOWN_MS)
    return () => clearTimeout(timer)
  }, [said])
  return (
    <p className="notice" role="status" aria-label="Notice">
      {said?.text}
    </p>
  )
}
