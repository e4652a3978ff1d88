import { useState } from 'react'

const HOUR_MS = 3_600_000

/** Ranges that end now. */
const LAST = {
  '1h': { name: 'Last hour', ms: HOUR_MS },
  '24h': { name: 'Last 24 hours', ms: 24 * HOUR_MS },
  '7d': { name: 'Last 7 days', ms: 7 * 24 * HOUR_MS },
  '30d': { name: 'Last 30 days', ms: 30 * 24 * HOUR_MS },
} as const

/** When sessions were created: since a time ago, or between two times in RFC 3339. In the address. */
export interface TimeRange {
  last?: keyof typeof LAST | undefined
  from?: string | undefined
  to?: string | undefined
}

export function readTimeRange(query: URLSearchParams): TimeRange {
  const last = query.get('last')
  if (last !== null && Object.hasOwn(LAST, last)) return { last: last as keyof typeof LAST }
  return { from: timeOf(query.get('from')), to: timeOf(query.get('to')) }
}

export function isLimited({ last, from, to }: TimeRange): boolean {
  return last !== undefined || from !== undefined || to !== undefined
}

/** The range's times. They are rounded to minutes, so that the same view asks the same for a while. */
export function timesOf({ last, from, to }: TimeRange, now = Date.now()): { from?: string; to?: string } {
  if (last === undefined) return { ...(from && { from }), ...(to && { to }) }
  return { from: new Date(Math.floor((now - LAST[last].ms) / 60_000) * 60_000).toISOString() }
}

function timeOf(text: string | null): string | undefined {
  const time = text === null ? Number.NaN : Date.parse(text)
  return Number.isNaN(time) ? undefined : new Date(time).toISOString()
}

/** Chooses when the sessions were created. */
export function TimeRangeField({
  range,
  onChange,
}: {
  range: TimeRange
  onChange: (range: TimeRange) => void
}) {
  const is_own = range.from !== undefined || range.to !== undefined
  const [asks, setAsks] = useState(is_own)
  const choose = (value: string) => {
    setAsks(value === 'own')
    if (value === 'own') return
    onChange(value === 'any' ? {} : { last: value as keyof typeof LAST })
  }
  const value = is_own || asks ? 'own' : (range.last ?? 'any')
  return (
    <span className="time-range">
      <label>
        <span className="visually-hidden">Created</span>
        <select value={value} onChange={({ target }) => choose(target.value)}>
          <option value="any">Any time</option>
          {Object.entries(LAST).map(([key, { name }]) => (
            <option key={key} value={key}>
              {name}
            </option>
          ))}
          <option value="own">Between…</option>
        </select>
      </label>
      {value === 'own' &&
        (['from', 'to'] as const).map((end) => (
          <label key={end}>
            <span>{end}</span>
            <input
              type="datetime-local"
              value={localText(range[end])}
              onChange={({ target }) =>
                onChange({ from: range.from, to: range.to, [end]: timeOf(target.value) })
              }
            />
          </label>
        ))}
    </span>
  )
}

/** A time as the field has it: in the reader's zone. */
function localText(at: string | undefined): string {
  if (at === undefined) return ''
  const time = new Date(at)
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}
