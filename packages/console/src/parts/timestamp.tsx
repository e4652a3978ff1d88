const clock = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
})
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' })
const MIDNIGHT = clock.format(new Date(2000, 0, 1))
const full_day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', year: 'numeric' })

/** A time in the reader's zone; the tooltip shows UTC to the microsecond. */
export function Timestamp({ at, only_clock = false }: { at: string; only_clock?: boolean }) {
  return (
    <time dateTime={at} title={`${at.replace('T', ' ').replace('Z', '')} UTC`} className="time">
      {only_clock ? clock.format(new Date(at)) : localText(at)}
    </time>
  )
}

function localText(at: string): string {
  const then = new Date(at)
  const now = new Date()
  if (then.toDateString() === now.toDateString()) return clock.format(then)
  if (then.getFullYear() === now.getFullYear())
    return `${day.format(then)}, ${clock.format(then).slice(0, 5)}`
  return full_day.format(then)
}

const DAY_S = 86_400
const YEAR_S = 31_536_000

/** A label of an axis with so many seconds between labels; at midnight it shows the day. */
export function axisText(at_ms: number, seconds: number): string {
  const then = new Date(at_ms)
  const begins_year = seconds >= DAY_S && then.getMonth() === 0 && then.getDate() === 1
  if (seconds >= YEAR_S || begins_year) return String(then.getFullYear())
  const text = clock.format(then)
  if (seconds >= DAY_S || text === MIDNIGHT) return day.format(then)
  return seconds >= 60 ? text.slice(0, 5) : text
}

/** A duration, in its two largest units. It is rounded first, so that 59.7 s is a minute, and no minute has 60 s. */
export function durationText(ms: number): string {
  if (ms < 1) return '<1 ms'
  if (ms < 999.5) return `${Math.round(ms)} ms`
  if (ms < 9_950) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  const minutes = Math.round(ms / 60_000)
  if (minutes < 1_440) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
  const hours = Math.round(ms / 3_600_000)
  return `${Math.floor(hours / 24)} d ${hours % 24} h`
}

const counted = new Intl.NumberFormat('en')

/** A count, with thousands separators. */
export function countText(count: number): string {
  return counted.format(count)
}

/** How many there are of a list that may go on after what was read of it. */
export function countOfRead(count: number, has_more: boolean): string {
  return `${has_more ? '≥ ' : ''}${countText(count)}`
}
