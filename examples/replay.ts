import { randomUUID } from 'node:crypto'
import { parseArgs } from 'node:util'
import { AnnalsApi } from './replay/annals_api.ts'

import { checkListByConfigs, checkListsByUser, oldestFirst } from './replay/check_lists.ts'
import { checkEntries, checkMessages, checkWalk } from './replay/check_logs.ts'
import { ReplayFailure } from './replay/failure.ts'
import { Progress } from './replay/progress.ts'
import { type RecordedRun, recordRun } from './replay/record.ts'
import { listDifferences, Report } from './replay/report.ts'
import { type JsonObject, type Run, readRuns, type StoreAs } from './replay/runs.ts'

const USAGE = `Replays recorded agent runs into Annals, reads them back, and compares.

Usage: npm run replay -- [options] <file>

  <file>           one run a line, as JSON: { "user", "configs", "messages" }
  --url <url>      where Annals is (http://127.0.0.1:8029)
  --token <token>  an API key with read and write; or set ANNALS_API_KEY
  --as <what>      store recorded messages as messages (default) or as events
  --help           this text

Each run becomes a session of its own, next to what the project has already. Ends with code 1 if anything
comes back different.
`
const RUNS_AT_ONCE = 16

/** What every step of a replay works with. */
interface Replay {
  api: AnnalsApi
  progress: Progress
  report: Report
  /** A sentence for everything that is not as it should be. */
  differences: string[]
  store_as: StoreAs
}

process.on('SIGINT', () => {
  const again = 'What was stored stays; the same command stores all runs anew, as sessions of their own.'
  process.stderr.write(`\nreplay: interrupted. ${again}\n`)
  process.exit(130)
})

await main().catch((error: unknown) => {
  if (!(error instanceof ReplayFailure)) throw error
  process.stderr.write(`replay: ${error.message}\n`)
  process.exit(1)
})

async function main(): Promise<void> {
  const options = readOptions()
  if (!options) {
    process.stdout.write(USAGE)
    return
  }
  const runs = await readRuns(options.file)
  const progress = new Progress()
  const api = new AnnalsApi({
    ...options,
    onAway: (obstacle) => progress.say(`the server is away (${obstacle}), trying again`),
    onBack: () => progress.say(''),
  })
  await api.ping()
  const replay: Replay = { api, progress, report: new Report(), differences: [], store_as: options.store_as }
  const recorded = await storeRuns(replay, runs)
  await checkLists(replay, recorded)
  await checkLogs(replay, recorded)
  process.stdout.write(conclude(replay, recorded))
  if (replay.differences.length > 0) process.exitCode = 1
}

/** Stores every run; they are given back in the order in which lists show their sessions. */
async function storeRuns(
  { api, progress, report, differences, store_as }: Replay,
  runs: Run[],
): Promise<RecordedRun[]> {
  const replay_id = randomUUID()
  const recorded = await report.time(
    () =>
      progress.over('Storing runs', runs, RUNS_AT_ONCE, (run) =>
        recordRun(api, run, store_as, replay_id, differences),
      ),
    (stored) => {
      const entries = stored.flatMap((one) => one.entries)
      const messages = stored.reduce((sum, one) => sum + one.run.messages.length, 0)
      return {
        'stored: sessions': stored.length,
        [`stored: messages, as ${store_as}`]: messages,
        'stored: tool calls, as events': entries.length - messages,
      }
    },
  )
  return oldestFirst(recorded)
}

/** Lists by user, by each reward, by a value inside an array, and by one that nothing has. */
async function checkLists({ api, report, differences }: Replay, recorded: RecordedRun[]): Promise<void> {
  const users = new Set(recorded.map(({ run }) => run.user)).size
  await report.time(
    () => checkListsByUser(api, recorded, differences),
    (found) => ({ [`listed: by user, ${users} of them`]: found }),
  )
  const rewards = [...new Set(recorded.map(({ run }) => run.configs.reward ?? null))].sort()
  const filters: JsonObject[] = [
    ...rewards.map((reward) => ({ reward })),
    { expected_actions: ['book_reservation'] },
    { expected_actions: ['no_such_action'] },
  ]
  for (const filter of filters) {
    await report.time(
      () => checkListByConfigs(api, filter, recorded, differences),
      (found) => ({ [`listed: by ${JSON.stringify(filter)}`]: found }),
    )
  }
}

/** Walks the longest session in both directions, then reads back every entry of every session. */
async function checkLogs(
  { api, progress, report, differences, store_as }: Replay,
  recorded: RecordedRun[],
): Promise<void> {
  const longest = recorded.reduce((a, b) => (b.entries.length > a.entries.length ? b : a))
  await report.time(
    () => checkWalk(api, longest, differences),
    (seen) => ({ 'walked: the longest session, forth and back': seen }),
  )
  await report.time(
    () =>
      progress.over('Comparing sessions', recorded, RUNS_AT_ONCE, (one) =>
        checkEntries(api, one, differences),
      ),
    (equal) => ({ 'read back: entries that are equal': equal.reduce((sum, count) => sum + count, 0) }),
  )
  if (store_as === 'events') return
  await report.time(
    () =>
      progress.over('Comparing messages', recorded, RUNS_AT_ONCE, (one) =>
        checkMessages(api, one, differences),
      ),
    (equal) => ({
      'read back: messages in openai format, equal': equal.reduce((sum, count) => sum + count, 0),
    }),
  )
}

/** What is printed at the end. */
function conclude({ api, report, differences }: Replay, recorded: RecordedRun[]): string {
  const entries = recorded.reduce((sum, one) => sum + one.entries.length, 0)
  const { sent, stored_before } = api.repeated
  const retries =
    sent === 0
      ? ''
      : `\nRequests sent again: ${sent}. Found stored by then, and not stored twice: ${stored_before}.\n`
  const result =
    differences.length === 0
      ? `${recorded.length} sessions, all ${entries} entries equal.`
      : listDifferences(differences)
  return `\n${report}\n${retries}\n${result}\n`
}

/** Undefined: help is asked for. */
function readOptions(): { file: string; url: string; token: string; store_as: StoreAs } | undefined {
  const { values, positionals } = parseArguments()
  if (values.help) return undefined
  const [file, ...more] = positionals
  if (file === undefined || more.length > 0) {
    throw new ReplayFailure('Give the path of one file of recorded runs. --help says more.')
  }
  if (!URL.canParse(values.url) || !/^https?:/.test(values.url)) {
    throw new ReplayFailure('--url must be an address such as http://127.0.0.1:8029.')
  }
  const token = values.token ?? process.env.ANNALS_API_KEY
  if (!token) {
    throw new ReplayFailure(
      'An API key is needed: give --token or set ANNALS_API_KEY. The first "npm start" prints one; "npx annals token create --project default --name replay" makes another.',
    )
  }
  if (values.as !== 'messages' && values.as !== 'events') {
    throw new ReplayFailure('--as must be messages or events.')
  }
  return { file, url: values.url.replace(/\/+$/, ''), token, store_as: values.as }
}

function parseArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        url: { type: 'string', default: 'http://127.0.0.1:8029' },
        token: { type: 'string' },
        as: { type: 'string', default: 'messages' },
        help: { type: 'boolean', default: false },
      },
    })
  } catch (error) {
    throw new ReplayFailure(`${(error as Error).message}. --help says what there is.`)
  }
}
