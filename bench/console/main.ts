import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { BenchFailure } from '../failure.ts'
import { loadSessions } from '../load_sessions.ts'
import { loadLongSession } from '../long_session.ts'
import { PostgresServer } from '../postgres.ts'
import { type Service, startService } from '../service.ts'
import { createSessions, openProject } from '../sessions.ts'
import { ConsoleTab, type Frames, msOf } from './browser.ts'

const USAGE = `Scrolls the console in Chromium: a list of a million sessions, and a session of 100,000 entries.

Usage: npm run bench:console [-- --quick]

  --quick  44,000 sessions and 5,000 entries: how fast views open; how they scroll says little at that size
  --help   this text
`
/** Not much more than one project with a million: it has more than half of all. */
const SESSIONS = 1_900_000
const ENTRIES = 100_000
const RELOADS = 5
const OPENED_ENTRIES = 1_000
const WHOLE_WAY_STEPS = 200

await main().catch((error: unknown) => {
  if (!(error instanceof BenchFailure)) throw error
  process.stderr.write(`bench: ${error.message}\n`)
  process.exit(1)
})

async function main(): Promise<void> {
  const options = { quick: { type: 'boolean', default: false }, help: { type: 'boolean' } } as const
  const { quick, help } = parseArgs({ options }).values
  if (help) return void process.stdout.write(USAGE)
  const directory = await mkdtemp(join(tmpdir(), 'annals-bench-'))
  const server = await PostgresServer.start(process.env.DATABASE_URL || undefined, directory)
  const database = await server.createDatabase()
  try {
    say('loading sessions')
    const { huge } = await loadSessions(database, quick ? 44_000 : SESSIONS)
    const service = await startService({ DATABASE_URL: database.url })
    try {
      const project = await openProject(service, huge.id)
      await openLog(service)
      const frames = [...(await scrollList(project, huge.sessions)), ...(await scrollLog(service, quick))]
      for (const { name, half_ms, p95_ms, longest_ms, work_ms } of frames)
        say(`${name}: frames ${half_ms}, ${p95_ms}, ${longest_ms} ms; work ${work_ms} ms a frame`)
    } finally {
      await service.stop()
    }
  } finally {
    await database.drop()
    await server.stop()
    await rm(directory, { recursive: true, force: true })
  }
}

async function scrollList(project: Service, sessions: number): Promise<Frames[]> {
  const tab = await ConsoleTab.open(project)
  try {
    for (let reload = 0; reload < RELOADS; reload++) {
      const began = performance.now()
      await tab.page.reload({ waitUntil: 'commit' })
      const rows = await msOf(() => tab.firstRows())
      await tab.page.locator('.over-time canvas').first().waitFor()
      say(`reload: first rows after ${rows} ms, the chart after ${Math.round(performance.now() - began)} ms`)
    }
    const top = await tab.frames(`list of ${sessions}, from the top`, () => tab.turn(100, 800))
    await tab.turn(400, 60_000)
    const below = await tab.frames('list, far below', () => tab.turn(100, 800))
    return [top, below]
  } finally {
    await tab.close()
  }
}

/** How long a session of usual length takes to open, and until the outline has all of it. */
async function openLog(service: Service): Promise<void> {
  const [id] = await createSessions(service, 1)
  await loadLongSession(service, id!, OPENED_ENTRIES)
  const tab = await ConsoleTab.open(service)
  try {
    for (let reload = 0; reload < RELOADS; reload++) {
      await tab.page.goto('about:blank')
      const began = performance.now()
      await tab.page.goto(`${service.url}/console/sessions/${id}`, { waitUntil: 'commit' })
      const first = await msOf(() => entryRow(tab, 1))
      await tab.page.getByText('Of the').waitFor({ state: 'detached' })
      const all = Math.round(performance.now() - began)
      say(
        `session of ${OPENED_ENTRIES} entries: the first after ${first} ms, all of them read after ${all} ms`,
      )
    }
  } finally {
    await tab.close()
  }
}

function entryRow({ page }: ConsoleTab, seq: number): Promise<void> {
  return page.getByRole('article', { name: `Entry ${seq}`, exact: true }).waitFor()
}

async function scrollLog(service: Service, quick: boolean): Promise<Frames[]> {
  const entries = quick ? 5_000 : ENTRIES
  const [id] = await createSessions(service, 1)
  say('loading entries')
  await loadLongSession(service, id!, entries)
  const tab = await ConsoleTab.open(service)
  try {
    await tab.page.goto(`${service.url}/console/sessions/${id}`)
    const entry = (seq: number) => entryRow(tab, seq)
    say(`first entries after ${await msOf(() => entry(1))} ms`)
    const frames = [await tab.frames(`log of ${entries}, from the top`, () => tab.turn(100, 800))]
    await tab.page.keyboard.press('End')
    await entry(entries)
    frames.push(await tab.frames('log, up from the end', () => tab.turn(60, -800)))
    for (const seq of [entries / 2, entries / 4, (entries / 4) * 3]) {
      await tab.page.getByLabel('Seq').fill(String(seq))
      const jump = async () => {
        await tab.page.keyboard.press('Enter')
        await entry(seq)
      }
      say(`entry ${seq} after ${await msOf(jump)} ms`)
    }
    frames.push(await tab.frames('log, from three quarters', () => tab.turn(100, 800)))
    frames.push(await tab.frames('log, the whole way by the scroll bar', () => drawScrollBar(tab)))
    return frames
  } finally {
    await tab.close()
  }
}

async function drawScrollBar({ page }: ConsoleTab): Promise<void> {
  await page.evaluate(`(async () => {
    const log = document.querySelector('.timeline')
    for (let step = 0; step <= ${WHOLE_WAY_STEPS}; step++) {
      log.scrollTop = (log.scrollHeight * step) / ${WHOLE_WAY_STEPS}
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)))
    }
  })()`)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
