import { expect, it } from 'vitest'
import { type GroupedRead, GroupedReads } from '../../src/postgres/grouped_reads.ts'
import { prepared } from '../../src/postgres/statement.ts'

const READ = prepared('read_note', 'SELECT $1, $2')

/** Reads that are sent, and answered with the parameters that were sent or the given error. */
function sentReads(error?: Error) {
  const sent: unknown[][] = []
  const reads = new GroupedReads(
    (group: readonly GroupedRead[]) => {
      for (const { parameters, resolve, reject } of group) {
        sent.push([...parameters])
        if (error) reject(error)
        else resolve([{ note: parameters.join() }])
      }
    },
    () => 1,
  )
  return { sent, run: (...parameters: string[]) => reads.run(READ, parameters) }
}

it('sends a read once that several ask for in one turn, and answers each', async () => {
  const { sent, run } = sentReads()
  const answers = [run('project', 'a'), run('project', 'b'), run('project', 'a')]
  expect((await Promise.all(answers)).map(([row]) => row!.note)).toEqual([
    'project,a',
    'project,b',
    'project,a',
  ])
  expect(sent).toEqual([
    ['project', 'a'],
    ['project', 'b'],
  ])
})

it('answers each with rows of its own', async () => {
  const { run } = sentReads()
  const [first, second] = await Promise.all([run('project', 'a'), run('project', 'a')])
  first![0]!.note = null
  expect(second).toEqual([{ note: 'project,a' }])
})

it('sends a read again that is asked for after others were sent', async () => {
  const { sent, run } = sentReads()
  await run('project', 'a')
  await run('project', 'a')
  expect(sent).toHaveLength(2)
})

it('tells everyone who asked for a read that it failed', async () => {
  const failure = new Error('cancelled')
  const { sent, run } = sentReads(failure)
  const answers = [run('project', 'a'), run('project', 'a')]
  for (const answer of answers) await expect(answer).rejects.toBe(failure)
  expect(sent).toHaveLength(1)
})
