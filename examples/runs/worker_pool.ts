// Three workers share the sessions that have input. One of them is killed: nothing is lost, and nothing is done twice.
import { type ChildProcess, fork } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { Annals, AnnalsError } from '@annals/client'

const annals = new Annals({ url: process.env.ANNALS_URL!, token: process.env.ANNALS_API_KEY! })

async function work(owner: string): Promise<never> {
  for (;;) {
    const claimed = await annals.runs.claim({ owner, ttl_ms: 2_000, wait_ms: 9_000 })
    for (const { session_id, fence, inputs } of claimed)
      try {
        for (const { id } of inputs) {
          await sleep(50) // the model and its tools
          const done = { kind: 'event' as const, type: 'done', data: { input: id } }
          await annals.sessions.appendBatch(session_id, [done], { apply: [id], fence })
        }
        await annals.runs.releaseLease(session_id, fence)
      } catch (error) {
        // Somebody else has the session: this worker was too slow.
        if (!(error instanceof AnnalsError && error.error === 'fenced')) throw error
      }
  }
}

async function main(): Promise<void> {
  const workers: ChildProcess[] = ['a', 'b', 'c'].map((name) => fork(process.argv[1]!, [name]))
  const sessions = await Promise.all(Array.from({ length: 4 }, () => annals.sessions.create({})))
  for (let n = 0; n < 20; n += 1)
    await annals.runs.send(sessions[n % 4]!.id, { mode: 'queue', kind: 'event', type: 'task', data: { n } })
  workers[0]!.kill('SIGKILL')
  const logs = () => Promise.all(sessions.map(({ id }) => annals.sessions.events(id).page()))
  while ((await logs()).flatMap(({ items }) => items).length < 40) await sleep(200)
  for (const worker of workers) worker.kill()
  for (const { items } of await logs()) console.log(items.map(({ type, data }) => data.n ?? type).join(' '))
}

await (process.argv[2] === undefined ? main() : work(process.argv[2]))
