import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { ANNALS_BIN } from '../harness/annals_process.ts'
import { countEntries, type Exported, insertLargeLog, useTransfers } from '../harness/exports.ts'
import { type Project, useService } from '../harness/service.ts'
import { execute, queryRows } from '../harness/sql.ts'
import { IS_THOROUGH } from '../harness/thorough.ts'

const service = useService()
const annals = useTransfers(service)
/** Enough for a command to be caught in the middle of it. */
const ENTRIES = 4_000
let source: Project
let session: string
let exported: Exported

beforeAll(async () => {
  source = await service.newProject()
  session = await insertLargeLog(service.databaseUrl, source.id, ENTRIES, 10_000)
  exported = await annals.export(source.name)
})

/** Starts a command and gives its process, and the most memory that it took, in MB, once it has ended. */
function start(args: string[]) {
  const child = spawn(process.execPath, [ANNALS_BIN, ...args], {
    env: { ...process.env, DATABASE_URL: service.databaseUrl },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let stderr = ''
  child.stderr.on('data', (data) => {
    stderr += data
  })
  let peak = 0
  const look = setInterval(async () => {
    const status = await readFile(`/proc/${child.pid}/status`, 'utf8').catch(() => '')
    peak = Math.max(peak, Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? 0) / 1024)
  }, 20)
  const ended = once(child, 'close').then(([code, signal]) => {
    clearInterval(look)
    return { code, signal, stderr, peak }
  })
  return { child, ended }
}

describe('an import that is interrupted', () => {
  it.each(['SIGKILL', 'SIGTERM'] as const)(
    'by %s has whole logs so far, and is completed by the next',
    async (signal) => {
      const target = await service.newProject()
      const { child, ended } = start(['import', exported.path, '--project', target.id])
      await vi.waitFor(
        async () => expect(await countEntries(service.databaseUrl, target.id)).toBeGreaterThan(0),
        {
          timeout: 60_000,
          interval: 5,
        },
      )
      child.kill(signal)
      const { code, stderr } = await ended
      if (signal === 'SIGTERM') expect({ code, stderr }).toMatchObject({ code: 130, stderr: /run the same/i })
      // PostgreSQL may still be at the last transaction, which has locked the head.
      await execute(
        service.databaseUrl,
        'SELECT FROM session_heads WHERE project_id = $1 AND session_id = $2 FOR UPDATE',
        [target.id, session],
      )
      const [log] = await queryRows<Record<string, string>>(
        service.databaseUrl,
        `SELECT h.last_seq, (SELECT max(e.seq) FROM entries e WHERE e.project_id = $1 AND e.session_id = $2) AS max_seq,
         (SELECT count(*) FROM entries e WHERE e.project_id = $1 AND e.session_id = $2) AS count
       FROM session_heads h WHERE h.project_id = $1 AND h.session_id = $2`,
        [target.id, session],
      )
      const stored = Number(log!.last_seq)
      expect(log).toEqual({ last_seq: `${stored}`, max_seq: `${stored}`, count: `${stored}` })
      expect(stored).toBeGreaterThan(0)
      expect(stored).toBeLessThan(ENTRIES)
      expect(await annals.import(exported.path, target.id)).toContain(
        ` 0 sessions, ${(ENTRIES - stored).toLocaleString('en')} entries.`,
      )
      expect((await annals.export(target.name)).body).toEqual(exported.body)
    },
  )
})

describe.runIf(process.platform === 'linux' && IS_THOROUGH)('memory', () => {
  it('stays bounded, however long a log is', async () => {
    const source = await service.newProject()
    const target = await service.newProject()
    await insertLargeLog(service.databaseUrl, source.id, 4_000, 100_000)
    const path = annals.newPath()
    const exporting = await start(['export', '--project', source.id, '--output', path]).ended
    expect(exporting.code, exporting.stderr).toBe(0)
    const importing = await start(['import', path, '--project', target.id]).ended
    expect(importing.code, importing.stderr).toBe(0)
    // The file has 400 MB. What Node takes by itself, and garbage that it was in no hurry to collect, count too.
    expect(exporting.peak).toBeLessThan(350)
    expect(importing.peak).toBeLessThan(450)
  })
})

it('an export that is interrupted leaves no file', async () => {
  const path = annals.newPath()
  const { child, ended } = start(['export', '--project', source.id, '--output', path])
  const isWriting = async () => (await readdir(dirname(path))).some((name) => name.includes('.partial'))
  await vi.waitFor(async () => expect(await isWriting()).toBe(true), { timeout: 60_000, interval: 2 })
  child.kill('SIGINT')
  expect((await ended).code).toBe(130)
  expect(
    (await readdir(dirname(path))).filter((name) => path.endsWith(name) || name.includes('.partial')),
  ).toEqual([])
})
