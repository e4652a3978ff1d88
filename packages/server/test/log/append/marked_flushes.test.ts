import { describe, expect, it } from 'vitest'
import { APPEND_ENTRIES, APPEND_MARKED_ENTRIES } from '../../../src/log/append/append_queries.ts'
import { flush } from '../../../src/log/append/flush.ts'
import { planFlush } from '../../../src/log/append/flush_plan.ts'
import type { Statement } from '../../../src/postgres/statement.ts'
import { FakeDatabase } from './fake_database.ts'
import { anEvent } from './requests.ts'

/** What is added to the function for the marks. */
const MARKS = /\s*SELECT p\.consumers INTO consumers[\s\S]*?p_new_entries;\s*END IF;\s*END IF;/

describe('a flush', () => {
  it('knows nothing of marks in a project without consumers, and does one thing more in the others', () => {
    const { name, definition } = APPEND_ENTRIES
    expect(definition).not.toMatch(/change_marks|projects/)
    const marked = APPEND_MARKED_ENTRIES.definition.replace(MARKS, '')
    expect(marked.replace(APPEND_MARKED_ENTRIES.name, name)).toBe(definition)
  })

  it('goes without marks only as long as it is known that there are no consumers', () => {
    const isMarked = (...unmarked_until: number[]) =>
      planFlush(
        'p',
        unmarked_until.map((until) => ({ request: anEvent({ unmarked_until: until }), known: new Map() })),
      ).call === APPEND_MARKED_ENTRIES
    const soon = performance.now() + 60_000
    expect(isMarked(soon, soon)).toBe(false)
    expect(isMarked(soon, performance.now() - 1)).toBe(true)
    expect(isMarked(Number.NEGATIVE_INFINITY)).toBe(true)
  })

  it('is sent with marks where that ran out while it waited for a connection', async () => {
    const sent: Statement[] = []
    const database = new FakeDatabase()
    const query: FakeDatabase['query'] = async (statement, parameters, onSending) => {
      await new Promise((resolve) => setTimeout(resolve, 60))
      onSending?.()
      sent.push(statement)
      return new FakeDatabase().query(statement, parameters)
    }
    const request = anEvent({ unmarked_until: performance.now() + 30 })
    const enqueued_at = performance.now()
    const outcome = new Promise((resolve, reject) => {
      const pending = { request, bytes: 1, enqueued_at, followers: [], resolve, reject }
      void flush(Object.assign(database, { query }), [pending], { wait_ms_max: 5_000 })
    })
    await expect(outcome).resolves.toMatchObject({ entries: [{ seq: 1 }] })
    expect(sent).toEqual([APPEND_MARKED_ENTRIES.statement])
  })
})
