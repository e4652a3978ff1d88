import type { Session } from '@annals/client'
import { useMemo, useSyncExternalStore } from 'react'
import { Menu } from '../parts/menu.tsx'
import { type Filter, pathText, tellingConditions } from './conditions.ts'

/** The columns of the list of sessions, in their order, with their widths. */
export const COLUMNS = {
  outcome: { name: 'Outcome', width: '5.7rem' },
  title: { name: 'Session', width: 'minmax(14rem, 4fr)' },
  user: { name: 'User', width: 'minmax(9rem, 1fr)' },
  configs: { name: 'Configs', width: 'minmax(7rem, 1fr)' },
  entries: { name: 'Entries', width: '3.9rem' },
  duration: { name: 'Duration', width: '6.3rem' },
  tokens: { name: 'Tokens', width: '4.4rem' },
  calls: { name: 'Tool calls', width: '4.6rem' },
  failures: { name: 'Failures', width: '4.2rem' },
  began: { name: 'Began', width: '6.6rem' },
  created: { name: 'Created', width: '6.6rem' },
  activity: { name: 'Last activity', width: '6.6rem' },
} as const

export type Column = keyof typeof COLUMNS

const ALL = Object.keys(COLUMNS) as Column[]
// A session that was imported began long before it was created.
const WIDE: Column[] = ALL.filter((column) => column !== 'activity' && column !== 'created')
const MEDIUM: Column[] = WIDE.filter((column) => column !== 'tokens' && column !== 'calls')
const NARROW: Column[] = ['outcome', 'title', 'user', 'entries', 'duration', 'failures', 'began']

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

const ROWS_READ_MAX = 200

/** The members of configs that rows have, those that most of them have first, and `agent` before all. */
export function useConfigsKeys(rows: Session[]): string[] {
  const [first, read] = [rows[0], Math.min(rows.length, ROWS_READ_MAX)]
  // biome-ignore lint/correctness/useExhaustiveDependencies: rows beyond these change nothing here
  return useMemo(() => {
    const counts = new Map<string, number>()
    for (const { configs } of rows.slice(0, ROWS_READ_MAX))
      for (const { path } of tellingConditions(configs as Filter))
        counts.set(pathText(path), (counts.get(pathText(path)) ?? 0) + 1)
    const keys = [...counts].sort(([, a], [, b]) => b - a).map(([key]) => key)
    return counts.has('agent') ? ['agent', ...keys.filter((key) => key !== 'agent')] : keys
  }, [first, read])
}

/** Chooses columns, and which member of configs has one. */
export function ColumnsMenu(props: {
  columns: Column[]
  onChange: (columns: Column[] | undefined) => void
  keys: string[]
  configs_key: string
  onKey: (key: string) => void
}) {
  const { columns, onChange, keys, configs_key, onKey } = props
  const toggle = (column: Column) => onChange(ALL.filter((one) => (one === column) !== columns.includes(one)))
  return (
    <Menu label="Columns" content="Columns" className="columns-menu">
      {ALL.filter((column) => column !== 'title').map((column) => (
        <label key={column} className="menu-item check">
          <input type="checkbox" checked={columns.includes(column)} onChange={() => toggle(column)} />
          {column === 'configs' ? configs_key : COLUMNS[column].name}
        </label>
      ))}
      <label className="menu-item check">
        Configs
        <select
          value={configs_key}
          onChange={({ target }) => onKey(target.value)}
          aria-label="Which member of configs has a column"
        >
          {(keys.includes(configs_key) ? keys : [configs_key, ...keys]).map((key) => (
            <option key={key}>{key}</option>
          ))}
        </select>
      </label>
      <button type="button" className="menu-item" onClick={() => onChange(undefined)}>
        Those that fit
      </button>
    </Menu>
  )
}
