const DATE = /^(\d{4}-\d\d-\d\d)/
const CLOCK = /^[T ](\d\d:\d\d)(:\d\d)?(?:[.,](\d{1,6})\d{0,12})?\s?(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?$/i
/** As HTTP and e-mail have it: `Thu, 15 Jan 2026 10:00:00 GMT`. */
const HTTP_DATE = /^(?:\w{3}, )?\d{1,2} \w{3} \d{4} \d\d:\d\d(?::\d\d)? (?:GMT|UTC|[+-]\d{4})$/

/** Since when a number is what it seems to be: 2001-09-09 in seconds, and the same in ms, µs and ns. */
const SECONDS_MIN = 1e8
const MS_MIN = 1e11
const US_MIN = 1e14
const NS_MIN = 1e17

/**
 * A time in RFC 3339, in UTC: from a text, which is in UTC where it names no zone, or from a number of seconds, ms, µs or
 * ns since 1970. Undefined for anything else.
 */
export function timeOf(value: unknown): string | undefined {
  if (typeof value === 'number') return ofNumber(value)
  if (typeof value !== 'string') return undefined
  const [, day] = DATE.exec(value) ?? []
  if (day === undefined) {
    if (HTTP_DATE.test(value)) return ofNumber(Date.parse(value))
    return /^\d{9,19}(?:\.\d{1,9})?$/.test(value) ? ofNumber(Number(value)) : undefined
  }
  const told = value.length === day.length ? 'T00:00' : value.slice(day.length)
  const [, minute, second = ':00', fraction = '', zone = 'Z'] = CLOCK.exec(told) ?? []
  if (minute === undefined) return undefined
  const [, hours, minutes = '00'] = /^([+-]\d\d):?(\d\d)?$/.exec(zone) ?? []
  const ms = Date.parse(`${day}T${minute}${second}${hours === undefined ? 'Z' : `${hours}:${minutes}`}`)
  if (Number.isNaN(ms)) return undefined
  const whole = new Date(ms).toISOString().slice(0, 19)
  // Years beyond 9999 have another form, and no transcript has any.
  return /^\d{4}-/.test(whole) ? `${whole}.${fraction.padEnd(6, '0')}Z` : undefined
}

function ofNumber(value: number): string | undefined {
  if (!(value >= SECONDS_MIN)) return undefined
  const us =
    value >= NS_MIN ? value / 1e3 : value >= US_MIN ? value : value >= MS_MIN ? value * 1e3 : value * 1e6
  const ms = Math.floor(us / 1e3)
  if (ms > 253_402_300_799_999) return undefined
  const rest = Math.min(999, Math.max(0, Math.round(us - ms * 1e3)))
  return `${new Date(ms).toISOString().slice(0, 23)}${String(rest).padStart(3, '0')}Z`
}
