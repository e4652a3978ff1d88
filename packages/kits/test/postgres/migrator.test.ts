import { afterEach, describe, expect, it } from 'vitest'
import { StartError } from '../../src/errors.ts'
import { migrate } from '../../src/postgres/migrator.ts'
import { type FakePostgres, rowAnswer, startFakePostgres } from './fake_postgres.ts'

let server: FakePostgres | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
})

async function refusalOf(attempt: Promise<unknown>): Promise<string> {
  const error = await attempt.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(StartError)
  return (error as StartError).message
}

describe('the migrator', () => {
  it('refuses a server that is too old, and says which one it found and which it needs', async () => {
    const queries: string[] = []
    server = await startFakePostgres((socket, type, payload) => {
      if (type !== 'Q') return
      queries.push(payload.toString('utf8', 0, payload.length - 1))
      socket.write(rowAnswer({ server_version_num: '140011', server_version: '14.11 (Debian)' }))
    })
    const message = await refusalOf(migrate(server.target))
    expect(message).toContain('14.11 (Debian)')
    expect(message).toContain('15 or newer')
    expect(queries).toHaveLength(1)
  })

  it('says what to check when the server cannot be reached', async () => {
    server = await startFakePostgres()
    const { target } = server
    await server.close()
    expect(await refusalOf(migrate(target))).toMatch(/cannot be reached.*Check DATABASE_URL/)
  })

  it.each([
    'postgresql://annals:a-secret-word@db:99999/annals',
    'postgresql://annals:a-secret-word@[::1/annals',
  ])(
    'says what to check when the URL is none, without repeating its password: %#',
    async (connectionString) => {
      const message = await refusalOf(migrate({ connectionString }))
      expect(message).toContain('DATABASE_URL')
      expect(message).not.toContain('a-secret-word')
    },
  )
})
