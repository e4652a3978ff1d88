import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { runAnnals } from '../harness/annals_process.ts'
import { runCommand } from '../harness/command_process.ts'
import { execute } from '../harness/sql.ts'
import { createTestDatabase, reasonForNoOwnDatabase, type TestDatabase } from '../harness/test_database.ts'

/** What Citus answers for a worker that wants a password, where there is no cluster (cluster_passwords.test.ts). */
const REFUSE = `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  RAISE EXCEPTION USING ERRCODE = '08006',
    MESSAGE = 'connection to the remote node annals@worker-1:5432 failed with the following error: fe_sendauth: no password supplied';
END $$`

const SENTENCE =
  'annals: The machines of the cluster do not let each other in: annals@worker-1:5432 (fe_sendauth: no password supplied). Let them in as docs/scale.md says ("Citus", step 3), and run this again.'

let database: TestDatabase

/** From here on, what writes this table needs the worker. */
async function needWorkerFor(table: string): Promise<void> {
  await execute(database.url, REFUSE)
  await execute(
    database.url,
    `CREATE TRIGGER refuse BEFORE INSERT ON ${table} FOR EACH STATEMENT EXECUTE FUNCTION refuse()`,
  )
}

/** What a command printed, but for how long it takes, and how it ended. */
async function endOf(...args: string[]) {
  const run = args[0] === 'serve' ? runAnnals : runCommand
  const { code, stderr } = await run(args, { DATABASE_URL: database.url, PORT: '0' })
  return { code, said: stderr.split('\n').filter((line) => line !== '' && !/: \d+ s$/.test(line)) }
}

describe.skipIf(reasonForNoOwnDatabase())(
  'a machine of a cluster that does not let another one in is named, in one sentence with the page that says what to do, and exit code 1',
  () => {
    beforeEach(async () => {
      database = await createTestDatabase()
    })
    afterEach(() => database.drop())

    it.each([['migrate'], ['distribute'], ['serve']])('by annals %s, which migrates', async (...args) => {
      await execute(
        database.url,
        'DELETE FROM schema_migrations m WHERE m.version = (SELECT max(o.version) FROM schema_migrations o)',
      )
      await needWorkerFor('schema_migrations')
      expect(await endOf(...args)).toEqual({ code: 1, said: [SENTENCE] })
    })

    it('by annals project create, which writes', async () => {
      await needWorkerFor('projects')
      expect(await endOf('project', 'create', 'refused')).toEqual({ code: 1, said: [SENTENCE] })
    })
  },
)
