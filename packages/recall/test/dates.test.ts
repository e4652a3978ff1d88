import { describe, expect, it } from 'vitest'
import { gainOf, readDates } from '../src/dates.js'

const NOW = Date.UTC(2024, 4, 15, 12)
const at = (text: string) => Date.parse(`${text}T10:00:00Z`)

describe('the dates of a question', () => {
  it.each([
    ['What did Gina find on 1 February, 2023?', [{ year: 2023, month: 1, day: 1 }]],
    ['who called on May 23rd, 2023', [{ year: 2023, month: 4, day: 23 }]],
    ['the trip of the 8th of December', [{ month: 11, day: 8 }]],
    ['all deploys since 2024-03-09', [{ year: 2024, month: 2, day: 9 }]],
    ['costs in 2024-03', [{ year: 2024, month: 2 }]],
    ['which spot was visited in May?', [{ month: 4 }]],
    ['what was planned in August 2023', [{ year: 2023, month: 7 }]],
    ['how often was it in 2023', [{ year: 2023 }]],
    ['was hat er am 3. März 2024 gesagt', [{ year: 2024, month: 2, day: 3 }]],
    ['el 4 de julio de 2023', [{ year: 2023, month: 6, day: 4 }]],
    ['что было 5 мая', [{ month: 4, day: 5 }]],
    ['what failed yesterday', [{ year: 2024, month: 4, day: 14 }]],
    ['spending last month', [{ year: 2024, month: 3 }]],
    ['what did we decide last Tuesday', [{ year: 2024, month: 4, day: 14 }]],
    ['what broke on Wednesday', [{ year: 2024, month: 4, day: 8 }]],
    ['who called three days ago', [{ year: 2024, month: 4, day: 12 }]],
    ['what was it a month ago', [{ year: 2024, month: 3 }]],
    ['was ist gestern passiert', [{ year: 2024, month: 4, day: 14 }]],
    [
      'invoices of 05/08/2023',
      [
        { year: 2023, month: 7, day: 5 },
        { year: 2023, month: 4, day: 8 },
      ],
    ],
    ['invoices of 13/08/2023', [{ year: 2023, month: 7, day: 13 }]],
  ])('are read from %j', (question, dates) => {
    expect(readDates(question, NOW)).toEqual(dates)
  })

  it.each([
    'what may it do?',
    'they march on',
    'order 2024x',
    'flight 4711 and 99-13',
    'call 555-2023-12-99',
  ])('are not found in %j, which has none', (question) => {
    expect(readDates(question, NOW).filter(({ day }) => day)).toEqual([])
  })

  it('count most on the day itself, less beside it, and nothing far away', () => {
    const asked = readDates('on 8 May 2023', NOW)
    const gains = ['2023-05-08', '2023-05-10', '2023-05-30', '2022-05-08'].map((day) =>
      gainOf(asked, at(day)),
    )
    expect(gains[0]).toBeGreaterThan(gains[1]!)
    expect(gains[1]).toBeGreaterThan(0)
    expect(gains.slice(2)).toEqual([0, 0])
    expect(gainOf(readDates('in May', NOW), at('2021-05-20'))).toBeGreaterThan(0)
    expect(gainOf(readDates('in December', NOW), at('2023-01-03'))).toBeGreaterThan(0)
  })
})
