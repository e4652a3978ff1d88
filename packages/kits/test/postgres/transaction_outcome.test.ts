import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import {
  brokeConnection,
  isForeignKeyViolation,
  isTransient,
  isUnavailable,
  isUniqueViolation,
  operatorsSentence,
  outcomeOf,
  outcomeOfCommit,
} from '../../src/postgres/database_errors.ts'

/** An error as a Citus 13.2 cluster on PostgreSQL 15 answered it, and what it means. */
interface ClusterError {
  situation: string
  answers: 'statement' | 'commit'
  code: string
  severity: string
  message: string
  outcome: 'rolled back' | 'in doubt'
  means: 'unavailable' | 'unique' | 'foreign key' | 'repeat'
}

const recorded = JSON.parse(
  readFileSync(new URL('cluster_errors.json', import.meta.url), 'utf8'),
) as ClusterError[]

const asThrown = ({ code, severity, message }: ClusterError) =>
  Object.assign(new Error(message), { code, severity })

describe('an error of a cluster', () => {
  it.each(recorded)('says what became of the transaction: $situation', (one) => {
    const read = one.answers === 'commit' ? outcomeOfCommit : outcomeOf
    expect(read(asThrown(one), true)).toBe(one.outcome)
  })

  it.each(recorded)('says what to do: $situation', (one) => {
    const error = asThrown(one)
    const means = [
      (isUnavailable(error) || one.outcome === 'in doubt') && 'unavailable',
      isUniqueViolation(error) && 'unique',
      isForeignKeyViolation(error) && 'foreign key',
      isTransient(error) && 'repeat',
    ].filter(Boolean)
    expect(means).toEqual([one.means])
  })

  it('names the machine to operators where one does not let another one in, and in no other case', () => {
    const said = recorded.map((one) => operatorsSentence(new Error('away', { cause: asThrown(one) })))
    expect(said.filter((sentence) => sentence !== undefined)).toEqual(
      [
        'fe_sendauth: no password supplied',
        'password authentication failed for user "annals"',
        'no pg_hba.conf entry for host "127.0.0.1", user "annals", database "annals", SSL encryption',
      ].map((reason) => expect.stringContaining(`annals@127.0.0.1:18121 (${reason}). `)),
    )
  })

  it('leaves the connection to the coordinator usable unless the coordinator ended it', () => {
    const broken = recorded.filter((one) => brokeConnection(asThrown(one)))
    expect(broken.map(({ severity }) => severity)).toEqual(['FATAL'])
  })
})

describe('an error of a single server', () => {
  it('rolls back a statement that took too long: no other machine can have committed it', () => {
    const slow = Object.assign(new Error('canceling statement due to statement timeout'), {
      code: '57014',
      severity: 'ERROR',
    })
    expect(outcomeOf(slow, false)).toBe('rolled back')
  })

  it('leaves a write in doubt that was sent when the connection broke', () => {
    expect(outcomeOf(new Error('Connection terminated unexpectedly'), false)).toBe('in doubt')
  })
})
