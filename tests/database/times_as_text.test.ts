import type pg from 'pg'
import { expect, inject, it } from 'vitest'
import { functionsOf, MODULES } from '../../packages/server/src/service/modules.ts'
import { queryRows, withConnection } from '../harness/sql.ts'
import { everyStatement } from './every_statement.ts'

/*
 * What a statement sends back as text must not depend on DateStyle, TimeZone, IntervalStyle, extra_float_digits or
 * bytea_output, which the database or the role may set, and which no pooler lets a connection choose.
 */

const DEPENDENT = [
  'date',
  'time',
  'timestamp',
  'timestamptz',
  'timetz',
  'interval',
  'bytea',
  'float4',
  'float8',
]

it('no statement sends back what a setting of the session changes', async () => {
  const { databaseUrl } = inject('sharedService')
  const types = await queryRows<{ oid: number; name: string }>(
    databaseUrl,
    'SELECT oid, typname AS name FROM pg_type WHERE typname = ANY ($1)',
    [DEPENDENT],
  )
  const names = new Map(types.map(({ oid, name }) => [oid, name]))
  const statements = await everyStatement()
  const found = await withConnection(databaseUrl, async (connection) => {
    const found: string[] = []
    for (const { name, text } of statements)
      for (const column of await columnsOf(connection, text))
        if (names.has(column.dataTypeID))
          found.push(`${name}: ${column.name} is ${names.get(column.dataTypeID)}`)
    return found
  })
  expect(found).toEqual([])
})

it('no statement turns a time into text but by to_char or as JSON', async () => {
  const { databaseUrl } = inject('sharedService')
  const columns = await queryRows<{ name: string }>(
    databaseUrl,
    `SELECT DISTINCT a.attname AS name FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
     WHERE c.relnamespace = current_schema()::regnamespace AND a.atttypid IN ('timestamptz'::regtype, 'date'::regtype)`,
  )
  const cast = new RegExp(`\\b(?:${columns.map(({ name }) => name).join('|')}|now\\(\\))\\)*::text\\b`, 'g')
  const texts = [
    ...(await everyStatement()).map(({ name, text }) => [name, text] as const),
    ...functionsOf(MODULES).map(({ name, definition }) => [name, definition] as const),
  ]
  expect(texts.flatMap(([name, text]) => (text.match(cast) ?? []).map((what) => `${name}: ${what}`))).toEqual(
    [],
  )
})

/** The columns that a statement would give, without carrying it out. */
async function columnsOf(connection: pg.Client, text: string): Promise<pg.FieldDef[]> {
  const wire = (connection as unknown as { connection: pg.Connection }).connection
  return new Promise((resolve, reject) => {
    let fields: pg.FieldDef[] = []
    const description = {
      submit: () => {
        wire.parse({ name: '', text, types: [] }, true)
        wire.describe({ type: 'S', name: '' }, true)
        wire.sync()
      },
      handleRowDescription: (message: { fields: pg.FieldDef[] }) => {
        fields = message.fields
      },
      handleError: reject,
      handleReadyForQuery: () => resolve(fields),
    }
    connection.query(description as unknown as pg.Submittable)
  })
}
