import { readdirSync, readFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import { migrate } from '../../packages/kits/src/postgres/migrator.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { createEmptyDatabase, type TestDatabase } from '../harness/test_database.ts'

const MIGRATIONS = new URL('../../packages/server/migrations/', import.meta.url)
const BEFORE = readdirSync(MIGRATIONS).filter((name) => name < '0032')
const PROJECT = '01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d'
const id = (name: string) => `md5('${name}')::uuid`

describe.skipIf(inject('testServer').mode === 'shared')('migrating a database that has learnt', () => {
  let database: TestDatabase
  beforeEach(async () => {
    database = await createEmptyDatabase()
  })
  afterEach(() => database.drop())

  it('notes, of a statement that a model worded, all sessions that the model was shown', async () => {
    const run = (sql: string) => execute(database.url, sql)
    await run(
      'CREATE TABLE schema_migrations (version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())',
    )
    for (const name of BEFORE) {
      await run(readFileSync(new URL(name, MIGRATIONS), 'utf8'))
      await run(`INSERT INTO schema_migrations VALUES (${Number(name.slice(0, 4))}, '${name}')`)
    }
    await run(`INSERT INTO projects (id, name, created_at) VALUES ('${PROJECT}', 'old', now())`)
    await run(
      `INSERT INTO learning_spaces (project_id, id, meta, created_at, updated_at) VALUES ('${PROJECT}', ${id('space')}, '{}', now(), now())`,
    )
    await run(`INSERT INTO skills (project_id, id, learning_space_id, name, description, source, meta, created_at, updated_at)
      VALUES ('${PROJECT}', ${id('skill')}, ${id('space')}, 'pay', '', 'learnt', '{}', now(), now())`)
    // Two runs were shown at once, and one alone; a curator was shown no run.
    for (const [name, step, session, other] of [
      ['both', 'reflect', id('shown'), id('not cited')],
      ['alone', 'reflect', id('alone'), 'NULL'],
      ['curate', 'curate', id('alone'), id('of a curator')],
      ['of nobody', 'reflect', 'NULL', 'NULL'],
    ])
      await run(`INSERT INTO learning_calls (project_id, learning_space_id, id, input_hash, step, model, session_id, other_session_id, status, attempts, tokens_in, tokens_out, created_at, sent_at)
        VALUES ('${PROJECT}', ${id('space')}, ${id(name!)}, '${name}', '${step}', 'm', ${session}, ${other}, 'applied', 1, 1, 1, now(), now())`)
    for (const [name, author, pinned, cited, is_origin] of [
      ['of both', 'model', false, 'shown', true],
      ['of the other', 'model', false, 'not cited', true],
      ['of one', 'model', false, 'alone', true],
      ['supported later', 'model', false, 'alone', false],
      ['edited', 'model', true, 'shown', true],
      ['of a rule', 'rule', false, 'shown', true],
    ] as const) {
      await run(`INSERT INTO statements (project_id, learning_space_id, id, skill_id, rule_key, statement_kind, state, author, pinned, text, supports, contradicts, created_at, updated_at)
        VALUES ('${PROJECT}', ${id('space')}, ${id(name)}, ${id('skill')}, '${name}', 'fact', 'proposed', '${author}', ${pinned}, '${name}', 1, 0, now(), now())`)
      await run(`INSERT INTO statement_cites (project_id, learning_space_id, statement_id, session_id, seq, polarity, quote, is_origin)
        VALUES ('${PROJECT}', ${id('space')}, ${id(name)}, ${id(cited)}, 1, '+', 'q', ${is_origin})`)
    }
    await migrate({ connectionString: database.url })
    const rows = await queryRows<{ text: string; origins: string[] | null }>(
      database.url,
      `SELECT s.text, (SELECT json_agg(n.name ORDER BY n.name) FROM jsonb_object_keys(s.origins) AS k
        JOIN unnest(ARRAY['shown', 'not cited', 'alone', 'of a curator']) AS n (name) ON md5(n.name)::uuid = k::uuid) AS origins
      FROM statements s`,
    )
    expect(Object.fromEntries(rows.map(({ text, origins }) => [text, origins]))).toEqual({
      'of both': ['not cited', 'shown'],
      'of the other': ['not cited', 'shown'],
      'of one': ['alone'],
      'supported later': null,
      edited: null,
      'of a rule': null,
    })
  })
})
