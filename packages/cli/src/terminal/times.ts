const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const UNITS: Record<string, number> = { s: SECOND, m: MINUTE, h: HOUR, d: DAY }

/** A duration in ms in words: `320 ms`, `4.1 s`, `2 min 5 s`, `3 h 20 min`, `6 d`. */
export function durationOf(ms: number): string {
  if (ms < SECOND) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / SECOND).toFixed(1)} s`
  const seconds = Math.round(ms / SECOND)
  if (seconds < 3600) return pair(seconds, 60, 'min', 's')
  const minutes = Math.round(ms / MINUTE)
  if (minutes < 48 * 60) return pair(minutes, 60, 'h', 'min')
  return pair(Math.round(ms / HOUR), 24, 'd', 'h')
}

function pair(count: number, base: number, large: string, small: string): string {
  const rest = count % base
  return `${Math.floor(count / base)} ${large}${rest > 0 ? ` ${rest} ${small}` : ''}`
}

/** How long ago a time was, coarsely: `now`, `12 min ago`, `18 h ago`, `3 d ago`. */
export function agoOf(time: string, now: number = Date.now()): string {
  const ms = now - Date.parse(time)
  if (ms < MINUTE) return 'now'
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min ago`
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)} h ago`
  return `${Math.floor(ms / DAY)} d ago`
}

const two = (value: number) => String(value).padStart(2, '0')

/** The time of day in the reader's zone. */
export function clockOf(time: string): string {
  const date = new Date(time)
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':')
}

/** The day in the reader's zone. */
export function dayOf(time: string): string {
  const date = new Date(time)
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
}

/** The ms of a duration such as `5m`; undefined for anything else. */
export function msOf(text: string): number | undefined {
  const [, count, unit] = /^(\d+(?:\.\d+)?)([smhd])$/.exec(text) ?? []
  return count === undefined || unit === undefined ? undefined : Number(count) * UNITS[unit]!
}

/** The time `5m` ago, or a time in RFC 3339, in ms since 1970; undefined for anything else. */
export function momentOf(text: string, now: number = Date.now()): number | undefined {
  const ms = msOf(text)
  if (ms !== undefined) return now - ms
  const moment = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(moment) ? undefined : moment
}
