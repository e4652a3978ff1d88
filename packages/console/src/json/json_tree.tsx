import { memo, useState } from 'react'
import { ExactNumber, isObject, type Json, shortText } from './exact_json.ts'

const MEMBERS_MAX = 50
const TEXT_MAX = 280
const OPEN_WITHIN = 40

/** A JSON value as a collapsible tree. Large parts start collapsed. */
export const JsonTree = memo(function JsonTree({ value, depth = 0 }: { value: Json; depth?: number }) {
  if (!isObject(value) && !Array.isArray(value)) return <Leaf value={value} />
  const members = membersOf(value)
  if (members.length === 0) return <span className="json-empty">{Array.isArray(value) ? '[ ]' : '{ }'}</span>
  return <Members members={members} depth={depth} is_array={Array.isArray(value)} />
})

function Members({
  members,
  depth,
  is_array,
}: {
  members: Array<[string, Json]>
  depth: number
  is_array: boolean
}) {
  const [shown, setShown] = useState(MEMBERS_MAX)
  return (
    <ul className="json-tree">
      {members.slice(0, shown).map(([key, value]) => (
        <li key={key}>
          <Member name={key} value={value} depth={depth} is_index={is_array} />
        </li>
      ))}
      {members.length > shown && (
        <li>
          <button
            type="button"
            className="button is-small"
            onClick={() => setShown(shown + 10 * MEMBERS_MAX)}
          >
            {members.length - shown} more
          </button>
        </li>
      )}
    </ul>
  )
}

function Member({
  name,
  value,
  depth,
  is_index,
}: {
  name: string
  value: Json
  depth: number
  is_index: boolean
}) {
  const key = <span className={is_index ? 'json-index' : 'json-key'}>{name}</span>
  const is_branch = (isObject(value) || Array.isArray(value)) && membersOf(value).length > 0
  const [is_open, setOpen] = useState(() => depth < 1 && sizeOf(value) <= OPEN_WITHIN)
  if (!is_branch) {
    return (
      <>
        {key} <JsonTree value={value} />
      </>
    )
  }
  return (
    <>
      <button type="button" className="json-toggle" aria-expanded={is_open} onClick={() => setOpen(!is_open)}>
        <span className="json-caret" aria-hidden="true">
          {is_open ? '▾' : '▸'}
        </span>
        {key}
        {!is_open && <span className="json-preview">{previewOf(value)}</span>}
      </button>
      {is_open && <JsonTree value={value} depth={depth + 1} />}
    </>
  )
}

function Leaf({ value }: { value: Json }) {
  const [is_whole, setWhole] = useState(false)
  if (typeof value === 'string' && value.length > TEXT_MAX && !is_whole) {
    return (
      <span className="json-string">
        {value.slice(0, TEXT_MAX)}…{' '}
        <button type="button" className="button is-small" onClick={() => setWhole(true)}>
          all {value.length.toLocaleString('en')} characters
        </button>
      </span>
    )
  }
  const kind = value instanceof ExactNumber ? 'number' : value === null ? 'null' : typeof value
  return (
    <span className={`json-${kind}`}>
      {typeof value === 'string' && value === '' ? '""' : shortText(value)}
    </span>
  )
}

function membersOf(value: Json): Array<[string, Json]> {
  if (Array.isArray(value)) return value.map((one, index) => [String(index), one])
  return isObject(value) ? Object.entries(value) : []
}

/** The number of values in it, counted no further than needed. */
function sizeOf(value: Json): number {
  let size = 0
  const left: Json[] = [value]
  while (left.length > 0 && size <= OPEN_WITHIN) {
    size += 1
    for (const [, inner] of membersOf(left.pop()!)) left.push(inner)
  }
  return size
}

function previewOf(value: Json): string {
  const members = membersOf(value)
  if (Array.isArray(value)) return `[${members.length}]`
  const names = members.slice(0, 4).map(([key]) => key)
  return `{ ${names.join(', ')}${members.length > names.length ? ', …' : ''} }`
}
