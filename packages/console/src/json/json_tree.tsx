import { writeJson } from '@annals/messages/json'
import { memo, useMemo, useState } from 'react'
import { countText } from '../parts/timestamp.tsx'
import { useIsFound } from '../search/finder.ts'
import { ExactNumber, isObject, type Json, shortText } from './exact_json.ts'

const MEMBERS_MAX = 50

/** How much of a tree starts open: this many levels, parts of this many values, texts of this many characters. */
interface Openness {
  levels: number
  values: number
  characters: number
}
const SUMMARY: Openness = { levels: 1, values: 40, characters: 280 }
const CONTENT: Openness = { levels: 12, values: 400, characters: 4_000 }

/** A JSON value as a collapsible tree. Large parts start collapsed; with `is_content`, only very large ones. */
export const JsonTree = memo(function JsonTree(props: { value: Json; is_content?: boolean }) {
  return <Tree value={props.value} depth={0} open={props.is_content ? CONTENT : SUMMARY} />
})

function Tree({ value, depth, open }: { value: Json; depth: number; open: Openness }) {
  if (!isObject(value) && !Array.isArray(value)) return <Leaf value={value} open={open} />
  const members = membersOf(value)
  if (members.length === 0) return <span className="json-empty">{Array.isArray(value) ? '[ ]' : '{ }'}</span>
  return <Members members={members} depth={depth} open={open} is_array={Array.isArray(value)} />
}

function Members(props: {
  members: Array<[string, Json]>
  depth: number
  open: Openness
  is_array: boolean
}) {
  const { members, depth, open, is_array } = props
  const [shown, setShown] = useState(MEMBERS_MAX)
  return (
    <ul className="json-tree">
      {members.slice(0, shown).map(([key, value]) => (
        <li key={key}>
          <Member name={key} value={value} depth={depth} open={open} is_index={is_array} />
        </li>
      ))}
      {members.length > shown && (
        <li>
          <button
            type="button"
            className="button is-small"
            onClick={() => setShown(shown + 10 * MEMBERS_MAX)}
          >
            {countText(members.length - shown)} more
          </button>
        </li>
      )}
    </ul>
  )
}

function Member(props: { name: string; value: Json; depth: number; open: Openness; is_index: boolean }) {
  const { name, value, depth, open, is_index } = props
  const key = <span className={is_index ? 'json-index' : 'json-key'}>{name}</span>
  const is_branch = (isObject(value) || Array.isArray(value)) && membersOf(value).length > 0
  const is_found = useIsFound(() => (is_branch ? writeJson(value) : ''))
  const is_small = useMemo(
    () => depth < open.levels && sizeOf(value, open.values) <= open.values,
    [value, depth, open],
  )
  const [chosen, setOpen] = useState<boolean>()
  const is_open = chosen ?? (is_small || is_found)
  if (!is_branch) {
    return (
      <>
        {key} <Tree value={value} depth={depth} open={open} />
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
      {is_open && <Tree value={value} depth={depth + 1} open={open} />}
    </>
  )
}

function Leaf({ value, open }: { value: Json; open: Openness }) {
  const is_found = useIsFound(() => (typeof value === 'string' ? value.slice(open.characters) : ''))
  const [chosen, setWhole] = useState(false)
  const is_whole = chosen || is_found
  if (typeof value === 'string' && value.length > open.characters && !is_whole) {
    return (
      <span className="json-string">
        {value.slice(0, open.characters)}…{' '}
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

/** The number of values in it, counted up to just beyond `most`. */
function sizeOf(value: Json, most: number): number {
  let size = 0
  const left: Json[] = [value]
  while (left.length > 0 && size <= most) {
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
