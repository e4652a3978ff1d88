import { setTimeout as sleep } from 'node:timers/promises'
import { expect, inject, it } from 'vitest'
import { openDatabase } from '../../packages/kits/src/postgres/database.ts'
import { prepared } from '../../packages/kits/src/postgres/statement.ts'

const PAUSE = prepared('pause', 'SELECT pg_sleep(0.3)')

it("long work is not ended by limits that are the role's, between or in its statements", async () => {
  const { serverUrl: connectionString } = inject('testServer')
  const limits = ['statement_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout']
  const options = limits.map((name) => `-c ${name}=100`).join(' ')
  const database = openDatabase({
    target: { connectionString, options },
    connections_max: 1,
    wait_ms_max: 60_000,
    statement_ms_max: 0,
  })
  try {
    await database.transaction(async (connection) => {
      await connection.query(PAUSE, [])
      await sleep(300)
      await connection.query(PAUSE, [])
    })
    await sleep(300)
    await database.query(PAUSE, [])
    expect(database.usage().total).toBe(1)
  } finally {
    await database.close()
  }
})
