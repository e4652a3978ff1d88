import { setTimeout as sleep } from 'node:timers/promises'
import { expect, inject, it } from 'vitest'
import { DatabaseAway, openDatabase } from '../../packages/kits/src/postgres/database.ts'
import { onSchemaConnection, schemaTransaction } from '../../packages/kits/src/postgres/schema_change.ts'
import { prepared } from '../../packages/kits/src/postgres/statement.ts'
import { queryRows, withConnection } from '../harness/sql.ts'

// Longer than opening a connection takes on a busy machine.
const LIMIT_MS = 1_000
const PAUSE_MS = 1_200
const PAUSE = prepared('pause', `SELECT pg_sleep(${PAUSE_MS / 1000})`)
const LOCK = prepared('lock', 'SELECT pg_advisory_xact_lock(31)')
const { serverUrl: connectionString } = inject('testServer')

/** Options of a role that ends what takes longer than LIMIT_MS, in all ways that the server has. */
async function impatient(...limits: string[]): Promise<string> {
  const known = await queryRows<{ name: string }>(
    connectionString,
    'SELECT name FROM pg_settings WHERE name = ANY ($1)',
    [limits],
  )
  return known.map(({ name }) => `-c ${name}=${LIMIT_MS}`).join(' ')
}

it("long work is not ended by limits that are the role's, between or in its statements", async () => {
  const options = await impatient(
    ...['statement_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout'],
    ...['transaction_timeout', 'lock_timeout'],
  )
  const database = openDatabase({
    target: { connectionString, options },
    connections_max: 1,
    wait_ms_max: 60_000,
    statement_ms_max: 0,
  })
  try {
    await database.transaction(async (connection) => {
      await connection.query(PAUSE, [])
      await sleep(PAUSE_MS)
      await connection.query(PAUSE, [])
    })
    await sleep(PAUSE_MS)
    await database.query(PAUSE, [])
    await withConnection(connectionString, async (holder) => {
      await holder.query('SELECT pg_advisory_lock(31)')
      const waiting = database.query(LOCK, [])
      await sleep(PAUSE_MS)
      await holder.query('SELECT pg_advisory_unlock(31)')
      await waiting
    })
    expect(database.usage().total).toBe(1)
  } finally {
    await database.close()
  }
})

it("neither does a role's limit end a change of the schema", async () => {
  const options = await impatient('statement_timeout', 'transaction_timeout')
  const target = { connectionString, options }
  const slept = await onSchemaConnection(target, (client) =>
    schemaTransaction(client, target, async () => {
      await client.query(PAUSE.text)
      return (await client.query(PAUSE.text)).rowCount
    }),
  )
  expect(slept).toBe(1)
})

it('a limit of the role that ends a transaction of a request leaves the database away, and no fault', async (context) => {
  const options = await impatient('transaction_timeout')
  context.skip(options === '', 'this server has no such limit')
  const database = openDatabase({
    target: { connectionString, options },
    connections_max: 1,
    wait_ms_max: 60_000,
    statement_ms_max: 30_000,
  })
  try {
    await expect(database.query(PAUSE, [])).rejects.toThrow(DatabaseAway)
    const transaction = database.transaction((connection) => connection.query(PAUSE, []))
    await expect(transaction).rejects.toThrow(DatabaseAway)
  } finally {
    await database.close()
  }
})
