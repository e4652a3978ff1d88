import { mkdir, mkdtemp, readFile, rm, stat, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { runAnnals, startServer } from '../harness/annals_process.ts'
import type { ApiClient } from '../harness/api_client.ts'
import { runCommand } from '../harness/command_process.ts'
import { expectOk } from '../harness/expectations.ts'
import { useService } from '../harness/service.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'annals-demo-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

const linesOf = (stdout: string) =>
  stdout.split('\n').map((line) => JSON.parse(line) as Record<string, unknown>)

interface Statement {
  text: string
  state: string
  cites: { session_id: string; seq: number; quote: string }[]
}

/** The space has learnt from errors of tools, by rules: every quote stands in the entry that it cites. */
async function expectLearnt(api: ApiClient, space: string): Promise<void> {
  const path = `/api/v1/learning_spaces/${space}/statements`
  const items = await vi.waitFor(async () => {
    const page = expectOk(await api.request<{ items: Statement[] }>('GET', path))
    expect(page.items.map(({ text }) => text).join()).toContain('payment_provider_timeout')
    return page.items
  }, 25_000)
  expect(new Set(items.map(({ state }) => state))).toEqual(new Set(['proposed']))
  const cites = items.flatMap((statement) => statement.cites)
  expect(cites.length).toBeGreaterThanOrEqual(items.length)
  for (const { session_id, seq, quote } of cites) {
    const query = { cursor: undefined, after_seq: seq - 1, limit: 1 }
    const entry = await api.request('GET', `/api/v1/session/${session_id}/timeline`, { query })
    expect(stringsIn(entry.json.data)).toContainEqual(expect.stringContaining(quote))
  }
}

/** All texts in a JSON value; one that is JSON itself counts as it is. */
function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return value && typeof value === 'object' ? Object.values(value).flatMap(stringsIn) : []
}

describe('annals demo', () => {
  const service = useService()

  it.each(['through the service', 'on the database'])(
    '%s fills a project, and twice makes no duplicates',
    async (how) => {
      const { id, token } = await service.newProject()
      const client = { ANNALS_URL: service.node.url, ANNALS_API_KEY: token, XDG_CONFIG_HOME: directory }
      const load = () =>
        how === 'on the database'
          ? runCommand(['demo', '--project', id], { DATABASE_URL: service.databaseUrl })
          : runCommand(['demo'], client)
      const first = await load()
      expect(first.code, first.stderr).toBe(0)
      expect(first.stdout).toContain('12 new sessions, with 192 entries, and 3 learning spaces')
      const list = () => runCommand(['sessions', 'list', '--all'], client)
      const before = await list()
      expect(linesOf(before.stdout)).toHaveLength(12)
      const second = await load()
      expect(second.code, second.stderr).toBe(0)
      expect(second.stdout).toContain('nothing was added')
      expect((await list()).stdout).toBe(before.stdout)
      // Search takes disk space, so the key of a project alone cannot switch it on.
      const searched = await runCommand(['search', 'refund'], client)
      expect(searched.code).toBe(how === 'on the database' ? 0 : 6)
      const spaces = linesOf((await runCommand(['spaces', 'list'], client)).stdout)
      expect(spaces).toHaveLength(3)
      const wantedSpace = spaces.find(({ meta }) => (meta as { demo: string }).demo === 'payment-provider')!
      await expectLearnt(await service.newClient({ token }), String(wantedSpace.id))

      const created = linesOf(before.stdout).map(({ created_at }) => Date.parse(created_at as string))
      const days = (Date.now() - Math.min(...created)) / 86_400_000
      expect(days > 2).toBe(how === 'on the database')
      expect(first.stdout.includes('Search is off')).toBe(how === 'through the service')
      if (how === 'through the service') {
        const shown = linesOf(
          (await runCommand(['show', '--user', 'omar', '--configs', 'outcome=failed'], client)).stdout,
        )
        const times = shown.map(({ occurred_at }) => Date.parse(String(occurred_at)))
        expect(Math.max(...times) - Math.min(...times)).toBeGreaterThan(10_000)
        expect(Date.now() - times[0]!).toBeGreaterThan(3_600_000)
      }

      const wanted = ['show', '--user', 'omar', '--configs', 'outcome=failed']
      const [third] = linesOf((await runCommand([...wanted, '--tool', '3'], client)).stdout)
      expect(third).toMatchObject({
        number: 3,
        name: 'issue_refund',
        arguments: { order_id: 'L-20461' },
        result: { is_error: true, value: { error: 'payment_provider_timeout' } },
      })
      const forPeople = await runCommand([...wanted, '--tools', '--no-json'], client)
      expect(forPeople.stdout).toMatch(/call 3 issue_refund[\s\S]*payment_provider_timeout/)
      expect((await runCommand([...wanted, '--tool', '9'], client)).code).toBe(3)
    },
  )

  it('says what to do where there is neither a service nor a database', async () => {
    const result = await runCommand(['demo'], {
      ANNALS_DATA_DIR: join(directory, 'none'),
      XDG_CONFIG_HOME: directory,
    })
    expect(result).toMatchObject({ code: 5, stderr: expect.stringContaining('annals serve') })
  })
})

describe('beside the embedded database', () => {
  it('commands find the service and make a key by themselves, which nobody else can read', async (context) => {
    context.skip(
      !inject('testServer').embedded,
      'the embedded PostgreSQL is tested without TEST_DATABASE_URL',
    )
    const data = { ANNALS_DATA_DIR: join(directory, 'data'), XDG_CONFIG_HOME: join(directory, 'config') }
    const node = await startServer(data)
    try {
      // The service has said in its directory where it listens.
      const here = data
      const demo = await runAnnals(['demo'], here)
      expect(demo.code, demo.stderr).toBe(0)
      const keys = () => runCommand(['token', 'list', '--json'], here).then(({ stdout }) => stdout)
      const before = await keys()
      await mkdir(join(directory, 'lost'))
      await symlink('nowhere', join(directory, 'lost', 'annals'))
      const unkept = { ...here, XDG_CONFIG_HOME: join(directory, 'lost') }
      const refused = await runCommand(['users', 'list'], unkept)
      expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('Set XDG_CONFIG_HOME') })
      expect(await keys()).toBe(before)
      const list = await runCommand(['sessions', 'list', '--user', 'omar'], here)
      expect(list.code, list.stderr).toBe(0)
      expect(linesOf(list.stdout)).toHaveLength(4)
      expect(list.stderr).toMatch(/Created an API key .* as the profile "embedded .*data"/)
      const again = await runCommand(['users', 'list'], here)
      expect(again).toMatchObject({ code: 0, stderr: '' })
      const moved = `http://localhost:${new URL(node.url).port}`
      expect((await runCommand(['users', 'list', '--url', moved], here)).code).toBe(0)
      const profiles = await readFile(join(directory, 'config', 'annals', 'profiles.json'), 'utf8')
      expect(profiles).toContain(`"${moved}"`)
      const elsewhere = await runCommand(['users', 'list', '--url', 'http://192.0.2.1:8029'], here)
      expect(elsewhere).toMatchObject({ code: 4, stderr: expect.stringContaining('No API key for') })
      const { mode } = await stat(join(directory, 'config', 'annals', 'profiles.json'))
      expect(mode & 0o777).toBe(0o600)
    } finally {
      await node.stop()
    }
    await expect(stat(join(directory, 'data', 'address'))).rejects.toThrow('ENOENT')
  })
})
