import { useState } from 'react'
import { useIsFound } from '../search/finder.ts'
import { Markdown } from './markdown.tsx'
import { countText } from './timestamp.tsx'

/** A text, formatted or in the fixed font as it is; of a long one, only the beginning is shown at first. */
export function LongText({ text, max, is_plain = false }: { text: string; max: number; is_plain?: boolean }) {
  const is_long = text.length > max * 1.2
  const is_found = useIsFound(() => (is_long ? text.slice(max) : ''))
  const [chosen, setWhole] = useState<boolean>()
  const is_whole = chosen ?? is_found
  const shown = is_long && !is_whole ? `${text.slice(0, max)}…` : text
  return (
    <>
      {is_plain ? <div className="plain-text">{shown}</div> : <Markdown text={shown} />}
      {is_long && (
        <button
          type="button"
          className="button is-small"
          aria-expanded={is_whole}
          onClick={() => setWhole(!is_whole)}
        >
          {is_whole ? 'Show less' : `Show all ${countText(text.length)} characters`}
        </button>
      )}
    </>
  )
}
