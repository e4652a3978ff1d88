#!/usr/bin/env node
import { parseArgs } from 'node:util'
import { PROMISES, type Report, type Result, runConformance } from './index.js'

const USAGE = `Checks over HTTP that a server keeps the promises of a session log.

Usage: annals-conformance <url> [options]

  --only <names>   try these promises only, separated by commas
  --skip <names>   leave these out
  --timeout <s>    the longest time for one promise, in seconds (30)
  --list           list the promises
  --json           print the report as JSON
  -h, --help       show this

ANNALS_API_KEY is a key that may read and write. ANNALS_OTHER_API_KEY is a key of another project, for the promise
"tenants". All that is created belongs to users named conformance-…, who are erased at the end.

Exit codes: 0: every promise that was tried is kept; 1: one is broken; 2: the arguments are wrong, or the server does
not accept the key.
`

process.exitCode = await main(process.argv.slice(2), process.env)

async function main(args: string[], env: NodeJS.ProcessEnv): Promise<number> {
  const parsed = argumentsOf(args)
  if (typeof parsed === 'string') return fail(parsed)
  const { values, url } = parsed
  if (values.help) return print(USAGE)
  if (values.list)
    return print(PROMISES.map(({ name, promise }) => `${name.padEnd(14)} ${promise}\n`).join(''))
  const unknown = namesIn(values.only, values.skip).find((name) => !PROMISES.some((one) => one.name === name))
  if (unknown !== undefined) return fail(`There is no promise "${unknown}". --list shows them.`)
  if (url === undefined) return fail('Name the URL of a server, such as http://127.0.0.1:8029.')
  const seconds = Number(values.timeout)
  if (!(seconds > 0 && seconds <= 86_400)) return fail(`--timeout takes seconds, not "${values.timeout}".`)
  const key = env.ANNALS_API_KEY
  if (!key) return fail('Set ANNALS_API_KEY to a key that may read and write.')
  const fault = await faultOf(url, key)
  if (fault !== undefined) return fail(fault)

  const skipped = new Set(namesIn(values.skip))
  const wanted = values.only === undefined ? PROMISES.map(({ name }) => name) : namesIn(values.only)
  const report = await runConformance({
    url,
    key,
    otherKey: env.ANNALS_OTHER_API_KEY || undefined,
    msMax: seconds * 1000,
    only: wanted.filter((name) => !skipped.has(name)),
    onResult: values.json ? () => {} : (result) => print(line(result)),
  })
  print(values.json ? `${JSON.stringify(report, null, 2)}\n` : summary(report))
  return report.broken === 0 ? 0 : 1
}

function argumentsOf(args: string[]) {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        only: { type: 'string' },
        skip: { type: 'string' },
        timeout: { type: 'string', default: '30' },
        list: { type: 'boolean' },
        json: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    })
    if (positionals.length > 1) return 'Name one URL.'
    return { values, url: positionals[0]?.replace(/(?<!\/)\/+$/, '').replace(/\/api\/v1$/, '') }
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function namesIn(...lists: Array<string | undefined>): string[] {
  return lists.flatMap((list) => list?.split(',').map((name) => name.trim()) ?? [])
}

/** Why nothing can be tried at all. */
async function faultOf(url: string, key: string): Promise<string | undefined> {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    return `${url} is not the URL of a server.`
  try {
    const { status } = await fetch(`${url}/api/v1/session?limit=1`, {
      headers: { authorization: `Bearer ${key}` },
      signal: AbortSignal.timeout(30_000),
    })
    return status === 200
      ? undefined
      : `${url} answered ${status} to GET /api/v1/session with the key in ANNALS_API_KEY.`
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error)
    return `${url} cannot be reached: ${cause}.`
  }
}

function line({ name, promise, reference, outcome, detail, ms }: Result): string {
  const word = { kept: 'kept', broken: 'BROKEN', skipped: 'skipped' }[outcome]
  const head = `${word.padEnd(8)} ${name.padEnd(14)} ${outcome === 'kept' ? `${ms} ms` : detail}\n`
  return outcome === 'broken' ? `${head}${' '.repeat(24)}Promised: ${promise} (${reference})\n` : head
}

function summary({ kept, broken, skipped, left_behind }: Report): string {
  const left = left_behind.length === 0 ? '' : `Users that could not be erased: ${left_behind.join(', ')}\n`
  return `\n${kept} kept, ${broken} broken, ${skipped} skipped\n${left}`
}

function print(text: string): number {
  process.stdout.write(text)
  return 0
}

function fail(text: string): number {
  process.stderr.write(`${text}\n`)
  return 2
}
