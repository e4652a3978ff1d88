import { readdirSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, inject, it } from 'vitest'
import { ADMIN_TOKEN, startServer } from '../harness/annals_process.ts'
import { runCommand } from '../harness/command_process.ts'
import { expectOk } from '../harness/expectations.ts'
import { httpClient } from '../harness/http_client.ts'
import { judge, SOUND } from '../harness/proof_verifiers.ts'
import { execute } from '../harness/sql.ts'
import { createEmptyDatabase, type TestDatabase } from '../harness/test_database.ts'
import { verifyDatabase } from '../harness/verification.ts'

const MIGRATIONS = new URL('../../packages/server/migrations/', import.meta.url)
/** What the first version with proof had. */
const BEFORE = readdirSync(MIGRATIONS).filter((name) => name < '0042')
const PROJECT = '01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d'
const VECTORS = new URL('../../docs/proof.vectors.json', import.meta.url)

interface Vectors {
  chains: Array<{ session: string; entries: Array<{ line: string }> }>
}

let database: TestDatabase
let path: string
beforeEach(async () => {
  database = await createEmptyDatabase()
  path = join(tmpdir(), `annals-proof-${process.pid}-${Date.now()}.ndjson`)
})
afterEach(async () => {
  await rm(path, { force: true })
  await database.drop()
})

/** Session by session, the first four of the entries that the vectors have, as that version stored them. */
async function storeVectors(run: (sql: string, values?: unknown[]) => Promise<void>): Promise<string[]> {
  const { chains } = JSON.parse(readFileSync(VECTORS, 'utf8')) as Vectors
  for (const { session, entries } of chains) {
    await run(
      `INSERT INTO sessions (project_id, id, configs, disable_task_tracking, created_at, forked_proof)
       SELECT $1::uuid, (s ->> 'id')::uuid, '{}', false, (s ->> 'created_at')::timestamptz, s ->> 'forked_proof'
       FROM jsonb(($2::text)) s`,
      [PROJECT, session],
    )
    for (const { line } of entries.slice(0, 4))
      await run(
        `INSERT INTO entries
         SELECT (jsonb_populate_record(NULL::entries, e || jsonb_build_object('project_id', $1::text, 'proof', '\\x' || (e ->> 'proof')))).*
         FROM jsonb(($2::text)) e`,
        [PROJECT, line],
      )
  }
  await run(
    `INSERT INTO session_heads (project_id, session_id, last_seq, total_tokens, updated_at, last_message_id, bytes, counted, proof)
     SELECT project_id, session_id, max(seq), sum(tokens), max(updated_at), (array_agg(id) FILTER (WHERE kind = 'message'))[1],
       sum(bytes), max(seq), (array_agg(proof ORDER BY seq DESC))[1]
     FROM entries GROUP BY 1, 2`,
  )
  return chains.map(({ session }) => (JSON.parse(session) as { id: string }).id)
}

it.skipIf(inject('testServer').mode === 'shared')(
  'a chain that the first version with proof made is sound after all migrations since, and goes on',
  async () => {
    const run = (sql: string, values?: unknown[]) => execute(database.url, sql, values)
    await run(
      'CREATE TABLE schema_migrations (version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())',
    )
    for (const name of BEFORE) {
      await run(readFileSync(new URL(name, MIGRATIONS), 'utf8'))
      await run(`INSERT INTO schema_migrations VALUES (${Number(name.slice(0, 4))}, '${name}')`)
    }
    await run(
      `INSERT INTO projects (id, name, created_at, proof) VALUES ('${PROJECT}', 'old', '2026-11-26T11:00:00Z', true)`,
    )
    const [first] = await storeVectors(run)

    // Its start migrates.
    const node = await startServer({ DATABASE_URL: database.url })
    try {
      const admin = httpClient(node.url, ADMIN_TOKEN)
      const sound = async (links: number) => {
        expect(await verifyDatabase(database.url, '--proof', '--project', PROJECT)).toMatchObject({
          ...{ sound: true, findings: [], projects: [{ links }] },
        })
        const args = ['export', '--project', PROJECT, '--output', path]
        const { code, stderr } = await runCommand(args, { DATABASE_URL: database.url })
        expect(code, stderr).toBe(0)
        expect(judge(path)).toEqual(SOUND)
        await rm(path)
      }
      await sound(5)
      const made = await admin.request<{ token: string }>('POST', `/admin/v1/projects/${PROJECT}/tokens`, {
        body: { name: 'new' },
      })
      const api = httpClient(node.url, expectOk(made, 201).token)
      const event = { type: 'note', data: { more: 1 } }
      const { seq } = expectOk(await api.request('POST', `/api/v1/session/${first}/events`, { body: event }))
      expect(seq).toBe(5)
      await sound(6)
      for (const client of [admin, api]) client.close()
    } finally {
      await node.stop()
    }
  },
)
