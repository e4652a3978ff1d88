import { invalidRequest } from '../../errors.js'

const FRACTION = /\.(\d{1,6})/

/**
 * A time of a caller's (RFC 3339, of any precision) in UTC, to the microsecond: the database accepts no offset of 16 hours
 * and more. `place`: what an error calls it, such as /expires_at.
 * @throws AnnalsError invalid_request
 */
export function timeInUtc(place: string, text: string): string {
  const time = new Date(text)
  const year = time.getUTCFullYear()
  if (!(year >= 1 && year <= 9_999))
    throw invalidRequest(
      `${place} must be a time such as 2026-11-21T09:30:00Z, from the year 1 to 9999 and without a leap second.`,
    )
  const micros = (FRACTION.exec(text)?.[1] ?? '').padEnd(6, '0')
  return `${time.toISOString().slice(0, 19)}.${micros}Z`
}
