import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCommand } from '../harness/command_process.ts'
import { execute } from '../harness/sql.ts'
import { createTestDatabase, reasonForNoOwnDatabase, type TestDatabase } from '../harness/test_database.ts'

const ROLE = `limited_${randomBytes(4).toString('hex')}`

let database: TestDatabase
let directory: string

describe.skipIf(reasonForNoOwnDatabase())(
  'what only the operator can mend is a sentence of a command',
  () => {
    beforeAll(async () => {
      directory = await mkdtemp(join(tmpdir(), 'annals-refused-'))
      database = await createTestDatabase()
      await execute(database.url, `CREATE ROLE ${ROLE}`)
      await execute(database.url, `GRANT SELECT ON ALL TABLES IN SCHEMA public TO ${ROLE}`)
      await execute(database.url, `REVOKE SELECT ON users, projects FROM ${ROLE}`)
    })
    afterAll(async () => {
      await execute(database.url, `DROP OWNED BY ${ROLE}`)
      await execute(database.url, `DROP ROLE ${ROLE}`)
      await database.drop()
      await rm(directory, { recursive: true })
    })

    it.each([
      ['verify'],
      ['export', '--output', 'exported'],
      ['backup', 'backup'],
      ['project', 'list'],
      ['project', 'create', 'new'],
      ['prune', '--all-projects', '--older-than', '1d'],
      ['migrate'],
    ])('that its user lacks a right: annals %s', async (...args) => {
      const begun = database.url.includes('?') ? '&' : '?'
      const DATABASE_URL = `${database.url}${begun}options=${encodeURIComponent(`-c role=${ROLE}`)}`
      const inDirectory = args.map((arg) =>
        ['exported', 'backup'].includes(arg) && args[0] !== arg ? join(directory, arg) : arg,
      )
      const { code, stderr } = await runCommand(inDirectory, { DATABASE_URL })
      expect(stderr).toMatch(/^annals: The database user .*permission denied /m)
      expect(stderr).not.toMatch(/report it|^ +at /m)
      expect(code).toBe(1)
    })

    it('that the data is damaged', async () => {
      const damaged = `CREATE FUNCTION damaged() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      RAISE EXCEPTION USING ERRCODE = 'XX001', MESSAGE = 'invalid page in block 0 of relation base/5/16384'; END $$`
      await execute(database.url, damaged)
      await execute(
        database.url,
        'CREATE TRIGGER damaged BEFORE INSERT ON projects FOR EACH STATEMENT EXECUTE FUNCTION damaged()',
      )
      const { code, stderr } = await runCommand(['project', 'create', 'new'], { DATABASE_URL: database.url })
      expect(stderr).toMatch(
        /^annals: PostgreSQL cannot read its own data \(invalid page in block 0 .*restore a backup/m,
      )
      expect(stderr).not.toMatch(/report it|^ +at /m)
      expect(code).toBe(1)
    })
  },
)
