import { useSyncExternalStore } from 'react'
import { Menu } from '../parts/menu.tsx'

/** The columns of the list of sessions, in their order, with their widths. */
export const COLUMNS = {
  outcome: { name: 'Outcome', width: '4.6rem' },
  title: { name: 'Session', width: 'minmax(14rem, 4fr)' },
  user: { name: 'User', width: 'minmax(9rem, 1fr)' },
  configs: { name: 'Configs', width: 'minmax(9rem, 2fr)' },
  entries: { name: 'Entries', width: '3.9rem' },
  duration: { name: 'Duration', width: '6.7rem' },
  tokens: { name: 'Tokens', width: '4.4rem' },
  calls: { name: 'Tool calls', width: '4.6rem' },
  failures: { name: 'Failures', width: '4.2rem' },
  created: { name: 'Created', width: '6.6rem' },
  activity: { name: 'Last activity', width: '6.6rem' },
} as const

export type Column = keyof typeof COLUMNS

const ALL = Object.keys(COLUMNS) as Column[]
const WIDE: Column[] = ALL.filter((column) => column !== 'activity')
const MEDIUM: Column[] = WIDE.filter((column) => column !== 'tokens' && column !== 'calls')
const NARROW: Column[] = ['outcome', 'title', 'user', 'entries', 'duration', 'failures', 'created']

/** The columns in the address; those that fit the screen if it names none. */
export function useColumns(text: string | null): Column[] {
  const fitting = useSyncExternalStore(listen, () => (wide.matches ? WIDE : medium.matches ? MEDIUM : NARROW))
  const chosen = text?.split(',') ?? []
  const columns = ALL.filter((column) => chosen.includes(column))
  return columns.length > 0 ? withTitle(columns) : fitting
}

const wide = matchMedia('(min-width: 1480px)')
const medium = matchMedia('(min-width: 1180px)')

function listen(onChange: () => void): () => void {
  for (const width of [wide, medium]) width.addEventListener('change', onChange)
  return () => {
    for (const width of [wide, medium]) width.removeEventListener('change', onChange)
  }
}

/** Without its title, nothing would lead to a session. */
function withTitle(columns: Column[]): Column[] {
  return ALL.filter((column) => column === 'title' || columns.includes(column))
}

/** Chooses columns. */
export function ColumnsMenu(props: { columns: Column[]; onChange: (columns: Column[] | undefined) => void }) {
  const { columns, onChange } = props
  const toggle = (column: Column) => onChange(ALL.filter((one) => (one === column) !== columns.includes(one)))
  return (
    <Menu label="Columns" content="Columns" className="columns-menu">
      {ALL.filter((column) => column !== 'title').map((column) => (
        <label key={column} className="menu-item check">
          <input type="checkbox" checked={columns.includes(column)} onChange={() => toggle(column)} />
          {COLUMNS[column].name}
        </label>
      ))}
      <button type="button" className="menu-item" onClick={() => onChange(undefined)}>
        Those that fit
      </button>
    </Menu>
  )
}
