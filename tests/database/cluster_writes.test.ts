import { randomUUID } from 'node:crypto'
import { describe, expect, inject, it } from 'vitest'
import { machineByMachine } from '../../packages/kits/src/postgres/citus/machine_by_machine.ts'
import { findOtherPlanners } from '../../packages/kits/src/postgres/citus/workers.ts'
import { openDatabase, type Parameter, type Row } from '../../packages/kits/src/postgres/database.ts'
import { requestSettings } from '../../packages/kits/src/postgres/pool_settings.ts'
import { planned } from '../../packages/kits/src/postgres/statement.ts'
import type { StoredFunction } from '../../packages/kits/src/postgres/stored_function.ts'
import {
  CREATE_LEARNING_SPACE,
  MERGE_META,
} from '../../packages/server/src/learning/learning_space_queries.ts'
import { APPEND_ENTRIES } from '../../packages/server/src/log/append/append_queries.ts'
import {
  type AppendedEntry,
  type AppendRequest,
  RETRACTION_TYPE,
} from '../../packages/server/src/log/append/append_request.ts'
import { planFlush } from '../../packages/server/src/log/append/flush_plan.ts'
import { MERGE_MESSAGE_META } from '../../packages/server/src/log/read/read_queries.ts'
import { END_COPIES } from '../../packages/server/src/log/unfinished_copy_queries.ts'
import { COPY_SHORT_SESSION } from '../../packages/server/src/sessions/copy_queries.ts'
import { ERASE_SLICE_OF_ENTRIES } from '../../packages/server/src/sessions/erase/erasure_queries.ts'
import {
  CREATE_SESSION,
  MERGE_CONFIGS,
  REPLACE_CONFIGS,
} from '../../packages/server/src/sessions/session_queries.ts'
import { withConnection } from '../harness/sql.ts'
import { ASKS_EVERY_PROJECT, VERIFIES_EVERY_PROJECT } from './asks_every_project.ts'
import { remoteCommands, SHA256, workerOf } from './cluster_fixture.ts'
import { everyStatement } from './every_statement.ts'
import { eventRequest } from './log_fixture.ts'

const { mode, serverUrl } = inject('testServer')
const BYTES_MAX = 65_536
/** Writes of tables that each machine has, besides imports. */
const NEEDS_ALL_WORKERS = [
  'begin_check_of_person',
  'change_member',
  'change_project',
  'create_api_key',
  'create_project',
  'invite_member',
  'revoke_api_key',
]
/** A value of each type of parameter, for a plan. */
const VALUES: Record<string, string> = {
  uuid: `'${randomUUID()}'`,
  'uuid[]': `'{${randomUUID()}}'`,
  text: `'${randomUUID()}'`,
  'text[]': "'{a}'",
  integer: '1',
  'integer[]': "'{1}'",
  bigint: '1',
  'bigint[]': "'{1}'",
  boolean: 'true',
  jsonb: "'{}'",
  'timestamp with time zone': "'2026-01-02'",
  'double precision': '1',
}

type Flush = [StoredFunction, readonly Parameter[]]

function flushOf(project: string, session: string, parts: Partial<AppendRequest>): Flush {
  const request = eventRequest(project, session, parts)
  const { parameters } = planFlush(project, [{ request, known: new Map() }])
  return [APPEND_ENTRIES, parameters]
}

/** All that an append can carry. The project is not known to be without consumers, but for the first. */
function appends(session: string, other: string): Record<string, Partial<AppendRequest>> {
  const marked = { unmarked_until: 0 }
  const { entries } = eventRequest('', '')
  return {
    event: {},
    'marked event': marked,
    'conditional event': { ...marked, if_match: 2 },
    'event with a key': { ...marked, idempotency: { key: 'k', request_hash: 'h' } },
    'event with a name': { ...marked, ...entriesWith({ key: 'state' }) },
    message: {
      ...marked,
      kind: 'message',
      ...entriesWith({ kind: 'message', type: null, format: 'openai', role: 'user', meta: '{}' }),
    },
    'event that refers to a blob': {
      ...marked,
      ...entriesWith({ references: [{ sha256: SHA256, pointer: '/data' }] }),
    },
    retraction: { ...marked, retraction: { last: 1 }, ...entriesWith({ type: RETRACTION_TYPE, data: '{}' }) },
    'events of two sessions': {
      ...marked,
      idempotency: { key: 'both', request_hash: 'h' },
      appends: [session, other].map((session_id) => {
        return { session_id, configs_patch: '{"c":1}', ...entriesWith({ id: randomUUID() }) }
      }),
      entries,
    },
  }
}

/** The entries of an append, changed. */
function entriesWith(change: Partial<AppendedEntry>): Pick<AppendRequest, 'entries'> {
  return { entries: eventRequest('', '').entries.map((entry) => ({ ...entry, ...change })) }
}

describe.skipIf(mode !== 'shared')('on a cluster, which TEST_DATABASE_URL names', () => {
  it.each([
    ['coordinator', 'is one command to one worker', 1],
    ['worker', 'needs no other machine', 0],
  ] as const)('through the %s, each write of a request %s', async (machine, _needs, commands) => {
    const counted = await remoteCommands(machine, (project, session) => {
      const owned = [project, session]
      const made = [project, session, 'ada', randomUUID(), '{"configs":{"a":1}}', randomUUID(), 'h']
      const [other, space] = [randomUUID(), randomUUID()]
      return [
        ['session', CREATE_SESSION, made],
        ['other session', CREATE_SESSION, [project, other, null, null, '{}', null, null]],
        ...Object.entries(appends(session, other)).map(([name, parts]): [string, ...Flush] => {
          return [name, ...flushOf(project, session, parts)]
        }),
        ['replaced configs', REPLACE_CONFIGS, [...owned, null, '{"configs":{"a":2}}', null]],
        ['merged configs', MERGE_CONFIGS, [...owned, null, '{"configs":{"b":2}}', BYTES_MAX]],
        ['meta of a message', MERGE_MESSAGE_META, [...owned, null, randomUUID(), '{"meta":{}}', BYTES_MAX]],
        [
          'copy',
          COPY_SHORT_SESSION,
          [...owned, randomUUID(), null, null, randomUUID(), '{}', null, null, 2_000, 4_000_000],
        ],
        ['end of a copy', END_COPIES.own, [project, `{${randomUUID()}}`]],
        ['slice of remains', ERASE_SLICE_OF_ENTRIES, [...owned, 2_000]],
        ['space', CREATE_LEARNING_SPACE, [project, space, 'ada', randomUUID(), '{"meta":{}}', null, null]],
        ['meta of a space', MERGE_META, [project, space, '{"meta":{"a":1}}', BYTES_MAX]],
      ]
    })
    expect(counted.filter(([, sent]) => sent !== commands)).toEqual([])
    expect(counted).toHaveLength(19)
  })

  it('each worker plans statements as the connections that serve requests do', async () => {
    await withConnection(serverUrl, async (connection) => {
      const query = async (sql: string, values: Parameter[]) =>
        (await connection.query(sql, [...values])).rows
      expect(await findOtherPlanners({ query: ({ text }, values) => query(text, [...values]) })).toEqual([])
      const { rows } = await connection.query("SELECT result FROM run_command_on_workers('SHOW jit')")
      expect(rows).toEqual([{ result: 'off' }, { result: 'off' }])
    })
  })

  it('an append waits for no move of shards that its project does not have, with a key and marks or without', async () => {
    const [project, session] = [randomUUID(), randomUUID()]
    const { url, group } = await withConnection(serverUrl, async (connection) => {
      await connection.query(
        "INSERT INTO projects (id, name, created_at, consumers) VALUES ($1, $2, now(), '{last_activity,learning,search}')",
        [project, `unmoved-${project}`],
      )
      return workerOf(connection, project)
    })
    await withConnection(url, (mover) =>
      withConnection(url, async (writer) => {
        const made = [project, session, 'ada', randomUUID(), '{}', null, null]
        await writer.query(CREATE_SESSION.statement.text, made)
        await mover.query('BEGIN')
        // As a move that blocks writes locks what it moves; 7 is the lock.
        await mover.query(
          `SELECT lock_shard_metadata(7, array_agg(s.shardid)) FROM pg_dist_shard s
           WHERE s.shardid <> get_shard_id_for_distribution_column(s.logicalrelid, $1::uuid) AND s.logicalrelid <> 'projects'::regclass
             AND s.shardminvalue IS NOT NULL`,
          [project],
        )
        await writer.query("SET lock_timeout = '2s'")
        const {
          event,
          'marked event': marked,
          'event with a key': keyed,
          message,
        } = appends(session, session)
        for (const parts of [event, marked, keyed, message]) {
          const [{ statement }, parameters] = flushOf(project, session, parts!)
          await writer.query(statement.text, [...parameters])
        }
        await mover.query('ROLLBACK')
      }),
    )
    expect(group).not.toBe('0')
  })

  it('each look-up that asks every project finds on machines by themselves what it finds in one statement', async () => {
    const target = { connectionString: serverUrl, distributed: true }
    const bounds = { connections_max: 4, wait_ms_max: 30_000, statement_ms_max: 30_000 }
    const pool = openDatabase({ target, settings: requestSettings(target), ...bounds })
    const failures: unknown[] = []
    const by_machine = machineByMachine(pool, (...failure) => failures.push(failure), 30_000)
    const projects: string[] = Array.from({ length: 12 }, () => randomUUID())
    try {
      for (const project of projects)
        await pool.query(
          planned(
            'add_scan',
            `INSERT INTO project_consumers AS c (project_id, consumer, scanned_to, sessions_scanned, scan_at, used_at)
             VALUES ($1, 'nobody', '${project}', 0, now(), now())`,
          ),
          [project],
        )
      for (const statement of await everyStatement()) {
        if (!statement.on_shards) continue
        const given = /^find_due_(?:spaces|summaries)$/.test(statement.name) ? [null, [], 8, 8] : [500]
        const parameters = statement.text.includes('$1') ? given : []
        const found = await by_machine.query(statement, parameters)
        for (const row of found) expect(Object.keys(row), statement.name).not.toEqual([])
        const own = (rows: Row[]) => rows.filter((row) => projects.includes(row.project_id!))
        const sorted = (rows: Row[]) =>
          own(rows)
            .map((row) => JSON.stringify(row))
            .sort()
        expect(sorted(found)).toEqual(sorted(await pool.query(statement, parameters)))
        if (statement.name === 'find_scans') expect(own(found)).toHaveLength(projects.length)
      }
    } finally {
      const forget = planned('forget', 'DELETE FROM project_consumers AS c WHERE c.project_id = $1')
      for (const project of projects) await pool.query(forget, [project])
      await pool.close()
    }
    expect(failures).toEqual([])
  }, 120_000)

  it('an append is stored whichever machine carries it out', async () => {
    const [project, session] = [randomUUID(), randomUUID()]
    const url = new URL(serverUrl)
    const machines = await withConnection(serverUrl, async (connection) => {
      await connection.query('INSERT INTO projects (id, name, created_at) VALUES ($1, $2, now())', [
        project,
        `cluster-${project}`,
      ])
      await connection.query(CREATE_SESSION.statement.text, [project, session, null, null, '{}', null, null])
      const { rows } = await connection.query(
        'SELECT nodename AS hostname, nodeport AS port FROM pg_dist_node',
      )
      return rows.map((machine) => Object.assign(new URL(url), machine).href)
    })
    for (const machine of machines)
      await withConnection(machine, async (connection) => {
        for (const what of ['event', 'message', 'event with a name']) {
          const [{ statement }, parameters] = flushOf(project, session, appends(session, session)[what]!)
          // Within a transaction, Citus runs the function here, and not where the project is.
          await connection.query('BEGIN')
          await connection.query(statement.text, [...parameters])
          await connection.query('COMMIT')
        }
      })
    const { rows } = await withConnection(serverUrl, (connection) =>
      connection.query(
        `SELECT array_agg(e.seq ORDER BY e.seq)::text AS seqs, (SELECT h.last_seq FROM session_heads h WHERE h.project_id = $1 AND h.session_id = $2) AS last_seq
         FROM entries e WHERE e.project_id = $1 AND e.session_id = $2`,
        [project, session],
      ),
    )
    expect(machines).toHaveLength(3)
    expect(rows).toEqual([{ seqs: '{1,2,3,4,5,6,7,8,9}', last_seq: '9' }])
  })

  it('takes each other statement, asks one shard for all but those of every project, and copies what lies between its parts to other workers for none that a request of a project needs', async () => {
    const needs_all = new Set<string>()
    const asks_many = new Set<string>()
    const refused: string[] = []
    await withConnection(serverUrl, async (connection) => {
      for (const { name, text } of await everyStatement()) {
        await connection.query(`PREPARE examined AS ${text}`)
        const { rows } = await connection.query(
          "SELECT parameter_types::text[] AS types FROM pg_prepared_statements WHERE name = 'examined'",
        )
        const types = rows[0].types as string[]
        // Citus plans no EXPLAIN with parameters.
        const given = text.replace(
          /\$(\d+)/g,
          (_, n) => `(${VALUES[types[n - 1]!] ?? 'NULL'}::${types[n - 1]})`,
        )
        const explained = await connection.query(`EXPLAIN (COSTS OFF) ${given}`).catch((error: Error) => {
          // A text that is no text of this statement's.
          if (!error.message.startsWith('invalid input')) refused.push(`${name}: ${error.message}`)
          return { rows: [] as Array<Record<string, string>> }
        })
        const plan = explained.rows.map((row) => row['QUERY PLAN']).join('\n')
        if (plan.includes('Distributed Subplan')) needs_all.add(name)
        if (/Task Count: (?!1$)/m.test(plan)) asks_many.add(name)
        if (name.startsWith('read_') && plan) expect(plan, name).toContain('Task Count: 1')
        await connection.query('DEALLOCATE examined')
      }
    })
    expect(refused).toEqual([])
    expect([...needs_all].filter((name) => !name.startsWith('restore_')).sort()).toEqual(NEEDS_ALL_WORKERS)
    const others = [...asks_many].filter((name) => !VERIFIES_EVERY_PROJECT.test(name))
    // Given a project, as here, these ask for that one's.
    expect([...others, 'find_due_spaces', 'find_due_summaries'].sort()).toEqual(ASKS_EVERY_PROJECT)
  }, 120_000)
})
