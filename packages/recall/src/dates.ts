import { SCORE } from './constants.js'

/** A day, month or year that a question names; without a year, that of any year. Months from 0. */
export interface AskedDate {
  year?: number
  month?: number
  day?: number
}

const DAY_MS = 86_400_000
const LANGUAGES = ['en', 'de', 'fr', 'es', 'it', 'pt', 'nl', 'sv', 'da', 'nb', 'tr', 'ru']
const MONTHS = monthNames()
/** Words that are months only beside a day or a year, or after one of `BEFORE_MONTH`. */
const AMBIGUOUS = new Set(['may', 'march', 'mars'])
const BEFORE_MONTH = new Set(
  'in last this of since until till by during before after early late mid en'.split(' '),
)
const WEEKDAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday']
/** From none on. */
const NUMBERS = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten']
const AGO = /\b(\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten) (day|week|month|year)s? ago\b/g
const ON_WEEKDAY =
  /\b(?:on|last|this|since|until|by|before|after) (sunday|monday|tuesday|wednesday|thursday|friday|saturday)\b/g
const BETWEEN = new Set(['of', 'de', 'del', 'do'])

function monthNames(): Map<string, number> {
  const names = new Map<string, number>()
  // Making a format takes longer than using it twelve times, and every start waits for this.
  for (const language of LANGUAGES)
    for (const day of ['numeric', undefined] as const) {
      const format = new Intl.DateTimeFormat(language, { day, month: 'long', timeZone: 'UTC' })
      for (let month = 0; month < 12; month++) {
        const name = format.formatToParts(Date.UTC(2024, month, 1)).find(({ type }) => type === 'month')!
        names.set(name.value.toLowerCase(), month)
      }
    }
  return names
}

/** The dates that a question names: `2024-05-08`, `8 May`, `May 8th, 2024`, `in May`, `2024`, `yesterday`. `now` in ms. */
export function readDates(question: string, now: number): AskedDate[] {
  const dates: AskedDate[] = []
  const text = question
    .toLowerCase()
    .replaceAll(
      /(?<![\d-])((?:19|20)\d\d)-(0[1-9]|1[0-2])(?:-(0[1-9]|[12]\d|3[01]))?(?![\d-])/g,
      (_all, year: string, month: string, day?: string) => {
        dates.push({ year: Number(year), month: Number(month) - 1, ...(day ? { day: Number(day) } : {}) })
        return ' '
      },
    )
    .replaceAll(/(?<![\d/])(\d{1,2})\/(\d{1,2})\/((?:19|20)\d\d)(?![\d/])/g, (_all, ...parts: string[]) => {
      const [first, second, year] = parts.map(Number) as [number, number, number]
      // Some write the day first, others the month.
      const orders =
        first === second
          ? [[first, second]]
          : [
              [first, second],
              [second, first],
            ]
      for (const [day, month] of orders as [number, number][])
        if (day >= 1 && day <= 31 && month >= 1 && month <= 12) dates.push({ year, month: month - 1, day })
      return ' '
    })
    .replaceAll(/\b(?:an?) (?=(?:day|week|month|year) ago\b)/g, 'one ')
    .replaceAll(/(\d)(?:st|nd|rd|th)\b/g, '$1')
  const words = text.match(/\d+|\p{L}+/gu) ?? []
  const taken = new Set<number>()
  for (const [index, word] of words.entries()) {
    const month = MONTHS.get(word)
    if (month === undefined) continue
    const before = BETWEEN.has(words[index - 1] ?? '') ? index - 2 : index - 1
    const after = BETWEEN.has(words[index + 1] ?? '') ? index + 2 : index + 1
    const day = dayOf(words[before]) ?? dayOf(words[after])
    const year = yearOf(words[after]) ?? (dayOf(words[after]) ? yearOf(words[after + 1]) : undefined)
    if (AMBIGUOUS.has(word) && !day && !year && !BEFORE_MONTH.has(words[index - 1] ?? '')) continue
    dates.push({ month, ...(day ? { day } : {}), ...(year ? { year } : {}) })
    for (const at of [after, after + 1]) taken.add(at)
  }
  for (const [index, word] of words.entries())
    if (yearOf(word) && !taken.has(index)) dates.push({ year: yearOf(word)! })
  return [...dates, ...relativeDates(text, now)]
}

function dayOf(word: string | undefined): number | undefined {
  return word !== undefined && /^\d{1,2}$/.test(word) && Number(word) >= 1 && Number(word) <= 31
    ? Number(word)
    : undefined
}

function yearOf(word: string | undefined): number | undefined {
  return word !== undefined && /^(?:19|20)\d\d$/.test(word) ? Number(word) : undefined
}

function relativeDates(text: string, now: number): AskedDate[] {
  const on = (ms: number): AskedDate => {
    const date = new Date(ms)
    return { year: date.getUTCFullYear(), month: date.getUTCMonth(), day: date.getUTCDate() }
  }
  const monthsAgo = (months: number): AskedDate => {
    const { year, month } = on(now)
    const date = new Date(Date.UTC(year!, month! - months, 1))
    return { year: date.getUTCFullYear(), month: date.getUTCMonth() }
  }
  const asked: Array<[RegExp, () => AskedDate[]]> = [
    [/\btoday\b/, () => [on(now)]],
    [/(?<!\p{L})(?:yesterday|gestern|ayer|ieri|ontem|gisteren|вчера)(?!\p{L})/u, () => [on(now - DAY_MS)]],
    [
      /\b(?:last|this|past) week\b|\bletzte woche\b|\bsemaine dernière|\bsemana pasada\b/,
      () => Array.from({ length: 7 }, (_none, days) => on(now - days * DAY_MS)),
    ],
    [/\bthis month\b/, () => [monthsAgo(0)]],
    [/\blast month\b|\bletzten monat\b|\bmois dernier\b|\bmes pasado\b/, () => [monthsAgo(1)]],
    [/\blast year\b/, () => [{ year: on(now).year! - 1 }]],
  ]
  const dates = asked.flatMap(([pattern, dates]) => (pattern.test(text) ? dates() : []))
  for (const [, name] of text.matchAll(ON_WEEKDAY)) {
    const days = (new Date(now).getUTCDay() - WEEKDAYS.indexOf(name!) + 7) % 7
    dates.push(on(now - (days || 7) * DAY_MS))
  }
  for (const [, number, unit] of text.matchAll(AGO)) {
    const count = NUMBERS.indexOf(number!) < 0 ? Number(number) : NUMBERS.indexOf(number!)
    if (unit === 'day') dates.push(on(now - count * DAY_MS))
    else if (unit === 'week')
      for (let away = -3; away <= 3; away++) dates.push(on(now - (7 * count + away) * DAY_MS))
    else dates.push(unit === 'month' ? monthsAgo(count) : { year: on(now).year! - count })
  }
  return dates
}

/** What an entry of a time, in ms, gains: most on the very day, less beside it, as people speak of what was or will be. */
export function gainOf(dates: readonly AskedDate[], at: number): number {
  let gain = 0
  for (const date of dates) gain = Math.max(gain, gainOfOne(date, at))
  return gain
}

function gainOfOne({ year, month, day }: AskedDate, at: number): number {
  const { day: on_day, month: in_month, year: in_year, near_day, near_month, days } = SCORE.dated
  const years = new Date(at).getUTCFullYear()
  if (month === undefined) return years === year ? in_year : 0
  let gain = 0
  for (const one of year === undefined ? [years - 1, years, years + 1] : [year]) {
    const from = Date.UTC(one, month, day ?? 1)
    const to = day === undefined ? Date.UTC(one, month + 1, 1) : from + DAY_MS
    if (at >= from && at < to) gain = Math.max(gain, day === undefined ? in_month : on_day)
    else if (at >= from - days.before * DAY_MS && at < to + days.after * DAY_MS)
      gain = Math.max(gain, day === undefined ? near_month : near_day)
  }
  return gain
}
