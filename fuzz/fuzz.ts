import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { operations } from './document.ts'
import { FuzzFailure } from './failure.ts'
import { plans, type Request } from './requests.ts'
import { type Finding, runRound } from './round.ts'
import { type Answer, sender } from './send.ts'
import { type Service, startService } from './service.ts'
import { Stored } from './stored.ts'

/** Requests of one round, which has a project of its own: few enough for its digests to cost nothing. */
const ROUND_REQUESTS = 500
const FINDINGS_SHOWN_MAX = 20

const HELP = `npm run fuzz -- [--requests 100000] [--seed NUMBER]

Sends requests of all operations in openapi.json to a service of its own: some fit, some nearly fit, some are hostile.
No answer may be a 5xx other than 503, each fits its schema, each 4xx names its place, and nothing is stored by a
request that failed. The seed repeats a run.`

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      requests: { type: 'string', default: '100000' },
      seed: { type: 'string', default: String(randomInt(2 ** 31)) },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  const [requests, seed] = [Number(values.requests), Number(values.seed)]
  if (values.help || !Number.isSafeInteger(requests) || requests < 1 || !Number.isSafeInteger(seed)) {
    say(HELP)
    return values.help ? 0 : 2
  }
  say(`${requests} requests of ${operations.length} operations, seed ${seed}`)
  const service = await startService()
  const stored = new Stored(service.databaseUrl)
  try {
    await stored.open()
    return await fuzz(service, stored, requests, seed)
  } finally {
    await stored.close()
    await service.stop()
  }
}

async function fuzz(service: Service, stored: Stored, requests: number, seed: number): Promise<number> {
  const began = performance.now()
  const counts = new Map<string, number>()
  const findings: Finding[] = []
  let planned = 0
  let sent = 0
  for (let round = 0; planned < requests && findings.length < FINDINGS_SHOWN_MAX; round += 1) {
    const project = await newProject(service)
    const send = sender(service.url, ({ operation }) =>
      operation.admin ? service.adminToken : project.token,
    )
    const count = Math.min(ROUND_REQUESTS, requests - planned)
    const found = await runRound(plans(seed + round, count), {
      send: (request) => {
        sent += 1
        return send(request)
      },
      digest: () => stored.digest(project.id),
      onAnswer: ({ operation }, { status }) => {
        const key = `${operation.id} ${Math.trunc(status / 100)}xx`
        counts.set(key, (counts.get(key) ?? 0) + 1)
      },
    })
    findings.push(...found)
    planned += count
    if (planned % 10_000 === 0) say(`${planned} …`)
  }
  report(counts, findings)
  for (const line of service.complaints.slice(0, FINDINGS_SHOWN_MAX)) say(`logged: ${line.slice(0, 500)}`)
  const seconds = Math.round((performance.now() - began) / 1000)
  const bad = findings.length + service.complaints.length
  say(
    `${planned} requests, ${sent - planned} sent again to see that they store nothing, ${seconds} s: ${bad === 0 ? 'no finding' : `${bad} findings, repeated by --seed ${seed} --requests ${requests}`}`,
  )
  return bad === 0 ? 0 : 1
}

async function newProject({ url, adminToken }: Service): Promise<{ id: string; token: string }> {
  const response = await fetch(`${url}/admin/v1/projects`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${adminToken}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ name: `round-${crypto.randomUUID()}` }),
  })
  if (response.status !== 201) throw new FuzzFailure(`No project could be made: ${await response.text()}`)
  const { data } = (await response.json()) as { data: { project: { id: string }; token: string } }
  return { id: data.project.id, token: data.token }
}

function report(counts: Map<string, number>, findings: Finding[]): void {
  const classes = ['2xx', '4xx', '5xx']
  const row = (cells: string[]) =>
    cells.map((cell, at) => (at === 0 ? cell.padEnd(26) : cell.padStart(8))).join('')
  say(row(['operation', ...classes]))
  for (const { id } of operations)
    say(row([id, ...classes.map((status) => String(counts.get(`${id} ${status}`) ?? 0))]))
  for (const { request, fault, answer } of findings.slice(0, FINDINGS_SHOWN_MAX)) tell(request, fault, answer)
}

function tell({ method, path, headers, body, operation }: Request, fault: string, answer?: Answer): void {
  say(
    `\n${operation.id}: ${fault}\n  ${method} ${path.slice(0, 300)}\n  ${JSON.stringify(headers).slice(0, 300)}`,
  )
  if (body !== undefined) say(`  ${body.slice(0, 500)}`)
  if (answer) say(`  → ${answer.status} ${answer.text.slice(0, 300)}`)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

try {
  process.exitCode = await main()
} catch (error) {
  if (!(error instanceof FuzzFailure)) throw error
  say(error.message)
  process.exitCode = 2
}
