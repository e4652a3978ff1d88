import { useState } from 'react'
import { Markdown } from './markdown.tsx'
import { countText } from './timestamp.tsx'

/** A text; of a long one, only the beginning is shown at first. */
export function LongText({ text, max }: { text: string; max: number }) {
  const [is_whole, setWhole] = useState(false)
  const is_long = text.length > max * 1.2
  if (!is_long) return <Markdown text={text} />
  return (
    <>
      <Markdown text={is_whole ? text : `${text.slice(0, max)}…`} />
      <button
        type="button"
        className="button is-small"
        aria-expanded={is_whole}
        onClick={() => setWhole(!is_whole)}
      >
        {is_whole ? 'Show less' : `Show all ${countText(text.length)} characters`}
      </button>
    </>
  )
}
