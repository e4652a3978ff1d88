import { describe, expect, it } from 'vitest'
import type { Database, Parameter } from '../../../kits/src/postgres/database.ts'
import { DatabaseAway } from '../../../kits/src/postgres/database.ts'
import { UsageDays } from '../../src/projects/usage.ts'

const refused = (code: string) => Object.assign(new Error(code), { code })

/** Answers each write with the next of `outcomes`, an error or nothing, and keeps what is stored. */
function daysOn(...outcomes: (Error | undefined)[]) {
  const stored: (readonly Parameter[])[] = []
  const query = async (_: unknown, parameters: readonly Parameter[]) => {
    const error = outcomes.shift()
    if (error) throw error
    stored.push([parameters[0]!, ...parameters.slice(2)])
    return []
  }
  return { days: new UsageDays({ of: () => ({ query }) as unknown as Database }), stored }
}

describe('what a node has counted', () => {
  it('is added up and written once', async () => {
    const { days, stored } = daysOn()
    days.add('a', { sessions: 1 })
    days.add('a', { entries: 2, bytes: 30 })
    days.add('b', { blobs: 1, blob_bytes: 4 })
    await days.write('b')
    expect(stored).toEqual([['b', 0, 0, 0, 1, 4]])
    await days.write()
    await days.write()
    expect(stored.slice(1)).toEqual([['a', 1, 2, 30, 0, 0]])
  })

  it.each([
    ['the database was away', new DatabaseAway(false, undefined)],
    ['the statement failed', refused('57014')],
  ])('is kept where %s, with what is added meanwhile', async (_, error) => {
    const { days, stored } = daysOn(error)
    days.add('a', { entries: 1 })
    await expect(days.write()).rejects.toBe(error)
    days.add('a', { entries: 1 })
    await days.write()
    expect(stored).toEqual([['a', 0, 2, 0, 0, 0]])
  })

  it('is not written again where the answer was lost: it may be stored', async () => {
    const lost = new DatabaseAway(true, undefined)
    const { days, stored } = daysOn(lost)
    days.add('a', { entries: 1 })
    await expect(days.write()).rejects.toBe(lost)
    await days.write()
    expect(stored).toEqual([])
  })

  it('of one project keeps nobody else’s from being written: neither one that is erased nor one that fails', async () => {
    const failed = refused('57014')
    const { days, stored } = daysOn(refused('23503'), failed)
    for (const project of ['erased', 'failing', 'sound']) days.add(project, { entries: 1 })
    await expect(days.write()).rejects.toBe(failed)
    expect(stored).toEqual([['sound', 0, 1, 0, 0, 0]])
    await days.write()
    expect(stored.slice(1)).toEqual([['failing', 0, 1, 0, 0, 0]])
  })

  it('is written for other projects while the machine of one is away', async () => {
    const away = new DatabaseAway(false, undefined)
    const { days, stored } = daysOn(away)
    for (const project of ['away', 'sound']) days.add(project, { entries: 1 })
    await expect(days.write()).rejects.toBe(away)
    expect(stored).toEqual([['sound', 0, 1, 0, 0, 0]])
    await days.write()
    expect(stored.slice(1)).toEqual([['away', 0, 1, 0, 0, 0]])
  })

  it('is lost to no other writer that ends meanwhile', async () => {
    const stored: (readonly Parameter[])[] = []
    let answer = () => {}
    const answered = new Promise<never[]>((resolve) => {
      answer = () => resolve([])
    })
    const query = (_: unknown, parameters: readonly Parameter[]) => {
      stored.push([parameters[0]!, parameters[3]!])
      return answered
    }
    const days = new UsageDays({ of: () => ({ query }) as unknown as Database })
    days.add('a', { entries: 1 })
    const first = days.write()
    await days.write()
    days.add('a', { entries: 2 })
    answer()
    await first
    await days.write()
    expect(stored).toEqual([
      ['a', 1],
      ['a', 2],
    ])
  })
})
