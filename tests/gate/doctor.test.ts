import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, inject, it } from 'vitest'
import { runAnnals, startServer } from '../harness/annals_process.ts'
import { socketUrl } from '../harness/database_url.ts'
import { doctor } from '../harness/doctor.ts'
import { execute } from '../harness/sql.ts'

describe('annals doctor', () => {
  it('of a database out of reach says so, and ends with 1', async () => {
    const { code, healthy, of } = await doctor({
      DATABASE_URL: 'postgresql://nobody:s3cret@127.0.0.1:1/none',
    })
    expect({ code, healthy }).toEqual({ code: 1, healthy: false })
    expect(of('connection')).toEqual([
      {
        check: 'connection',
        state: 'failure',
        found: expect.stringContaining('ECONNREFUSED'),
        todo: expect.any(String),
      },
    ])
    expect(JSON.stringify(of('connection'))).not.toContain('s3cret')
  })

  it('names a value that does not fit, without repeating it', async () => {
    const { code, of, checks } = await doctor({ PORT: 'eighty' })
    expect(code).toBe(1)
    expect(of('settings')[0]).toMatchObject({ state: 'failure', todo: expect.stringContaining('PORT') })
    expect(JSON.stringify(checks)).not.toContain('eighty')
  })

  it('finds a variable that is misspelt, and which was meant', async () => {
    const env = { ANNALS_QUEUE_REQUEST_MAX: '5', ANNALS_DATA_DIR: join(tmpdir(), 'annals-test-unused') }
    const { code, of } = await doctor(env)
    expect(code).toBe(0)
    expect(of('variables')).toEqual([
      {
        check: 'variables',
        state: 'warning',
        found: expect.stringContaining('ANNALS_QUEUE_REQUEST_MAX'),
        todo: expect.stringContaining('did you mean ANNALS_QUEUE_REQUESTS_MAX?'),
      },
    ])
  })

  it('warns of a service that is open to the network without TLS, as its start does', async () => {
    const env = { HOST: '0.0.0.0', ANNALS_DATA_DIR: join(tmpdir(), 'annals-test-unused') }
    const { code, of } = await doctor(env)
    expect(code).toBe(0)
    expect(of('exposure')).toEqual([
      {
        check: 'exposure',
        state: 'warning',
        found: expect.stringContaining('HOST 0.0.0.0'),
        todo: expect.stringContaining('TLS'),
      },
    ])
  })

  it('does not take a data directory that it cannot read for one to be created', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'annals-test-'))
    try {
      await writeFile(join(directory, 'data'), '')
      const { code, of } = await doctor({ ANNALS_DATA_DIR: join(directory, 'data') })
      expect(code).toBe(1)
      expect(of('data directory')).toEqual([
        {
          check: 'data directory',
          state: 'failure',
          found: expect.stringContaining('cannot be used'),
          todo: expect.stringContaining('is not a directory'),
        },
      ])
    } finally {
      await rm(directory, { recursive: true })
    }
  })

  it('tells people in lines what to do', async () => {
    const { code, stdout } = await runAnnals(['doctor'], {
      DATABASE_URL: 'postgresql://nobody@127.0.0.1:1/none',
    })
    expect(code).toBe(1)
    expect(stdout).toMatch(/^failure +connection +no connection.*\n +→ Check DATABASE_URL/m)
    expect(stdout).toMatch(/checks: 1 failures/)
  })
})

describe('annals doctor of the embedded PostgreSQL', () => {
  it('finds settings that endanger what was answered, open rights, and what kill -9 left', async (context) => {
    context.skip(!inject('testServer').embedded, 'in the run without TEST_DATABASE_URL')
    const directory = await mkdtemp(join(tmpdir(), 'annals-test-'))
    const env = { ANNALS_DATA_DIR: join(directory, 'data') }
    try {
      const fresh = await doctor(env)
      expect(fresh.of('data directory')[0]!.found).toContain('the first start creates it')

      const node = await startServer(env)
      const cluster = join(env.ANNALS_DATA_DIR, 'postgres')
      const url = socketUrl({ host: cluster, port: 5432, user: 'annals', database: 'annals' })
      await execute(url, 'ALTER SYSTEM SET fsync = off')
      await execute(url, 'ALTER SYSTEM SET full_page_writes = off')
      await execute(url, 'SELECT pg_reload_conf()')
      await chmod(cluster, 0o755)
      await node.kill()

      const { code, of } = await doctor(env)
      expect(code).toBe(1)
      expect(of('durability').map(({ state, found }) => `${state}: ${found}`)).toEqual(
        expect.arrayContaining(['failure: fsync is off', 'failure: full_page_writes is off']),
      )
      expect(of('rights')[0]).toMatchObject({ state: 'failure', found: expect.stringContaining('755') })
      expect(of('remains')[0]).toMatchObject({ state: 'warning', found: expect.stringContaining('killed') })

      const later = await doctor(env)
      expect(later.of('remains')[0]!.state).toBe('ok')
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  })
})
