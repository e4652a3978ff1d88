import { expect, it } from 'vitest'
import { SharedTries } from '../../src/fairness/shared_tries.ts'

const here = () => false

it('what one try found nothing by, those who came before it do not try again, but for whom it may be something', async () => {
  const tries = new SharedTries<string>()
  const tried: string[] = []
  const asking = ['a', 'b', 'c'].map((name) => {
    const attempt = async () => {
      tried.push(name)
      return 'held by b'
    }
    return tries.try('lease', attempt, here, (answer) => answer !== `held by ${name}`)
  })
  expect(await Promise.all(asking)).toEqual(['held by b', 'held by b', 'held by b'])
  expect(tried).toEqual(['a', 'b'])
})

it('a try that began before a caller came is not its own, nor is one that found something, nor one for another thing', async () => {
  const tries = new SharedTries<string>()
  const tried: string[] = []
  let answer = (_found: string) => {}
  const ask = (name: string, what: string, found?: string) =>
    tries.try(
      what,
      () => {
        tried.push(name)
        return found === undefined ? new Promise((resolve) => (answer = resolve)) : Promise.resolve(found)
      },
      here,
      (outcome) => outcome === 'nothing',
    )
  const first = ask('first', 'work')
  await expect.poll(() => tried).toEqual(['first'])
  const later = [
    ask('second', 'work', 'work'),
    ask('third', 'work', 'nothing'),
    ask('fourth', 'work', 'nothing'),
  ]
  expect(await ask('other', 'more work', 'nothing')).toBe('nothing')
  answer('nothing')
  expect(await first).toBe('nothing')
  expect(await Promise.all(later)).toEqual(['work', 'nothing', 'nothing'])
  expect(tried).toEqual(['first', 'other', 'second', 'third'])
})

it('a failure is that of all who wait for it, and nothing is tried for those who are gone', async () => {
  const tries = new SharedTries<string>()
  let attempts = 0
  const fail = async () => {
    attempts += 1
    throw new Error('away')
  }
  const ask = (isGone: () => boolean) => tries.try('work', fail, isGone, () => true)
  const [one, gone, two] = await Promise.allSettled([ask(here), ask(() => true), ask(here)])
  expect([one.status, two.status, attempts]).toEqual(['rejected', 'rejected', 1])
  expect(gone).toEqual({ status: 'fulfilled', value: undefined })
})
