// Two runners after a deploy: the old one hangs, the new one takes over, and the old one wakes up. With WITHOUT=1 nobody
// takes a lease, and steps are done twice.
import { setTimeout as sleep } from 'node:timers/promises'
import { Annals, AnnalsError } from '@annals/client'

const annals = new Annals({ url: process.env.ANNALS_URL!, token: process.env.ANNALS_API_KEY! })
const { id } = await annals.sessions.create({})

async function run(owner: string, hangs_ms: number): Promise<void> {
  const fence = process.env.WITHOUT
    ? undefined
    : (await annals.runs.takeLease(id, { owner, ttl_ms: 1_000, wait_ms: 20_000 })).fence
  const done = (await annals.sessions.events(id).page()).items
  try {
    for (let step = done.length + 1; step <= 3; step += 1) {
      if (step === 2) await sleep(hangs_ms)
      await annals.sessions.append(id, { type: 'step', data: { step, by: owner } }, { fence })
    }
  } catch (error) {
    if (!(error instanceof AnnalsError && error.error === 'fenced')) throw error
    console.log(`${owner}: somebody else has the session, so I stop`)
  }
}

const old = run('old', 3_000)
while ((await annals.sessions.events(id).page()).items.length === 0) await sleep(50)
await Promise.all([old, run('new', 0)])
const steps = (await annals.sessions.events(id).page()).items.map(({ data }) => `${data.step} by ${data.by}`)
console.log(steps.join(', '))
process.exitCode = steps.length === 3 ? 0 : 1
