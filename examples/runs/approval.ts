// A runner asks before it pays, and is killed while it waits. A person says yes; the next runner goes on with the answer.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { Annals } from '@annals/client'

const annals = new Annals({ url: process.env.ANNALS_URL!, token: process.env.ANNALS_API_KEY! })

async function pay(session_id: string, request_id: string): Promise<void> {
  const lease = { owner: `runner ${process.pid}`, ttl_ms: 2_000, wait_ms: 30_000 }
  await annals.runs.withLease(session_id, lease, async ({ fence, signal }) => {
    const call = { name: 'pay', arguments: { to: 'ada', eur: 40 } }
    // Under the same id it is the same request: a runner that starts again finds its answer.
    let asked = await annals.runs.request(session_id, { id: request_id, kind: 'approval', call }, { fence })
    process.send!('asked')
    for await (const { event, data } of annals.runs.follow(session_id, { signal })) {
      if (event === 'request' && data.id === request_id) asked = data
      if (asked.state !== 'open') break
    }
    // With an id, a runner that is killed right after this does not note it twice.
    const paid = { id: request_id, kind: 'event' as const, type: 'paid', data: call.arguments }
    if (asked.decision === 'approve') await annals.sessions.appendBatch(session_id, [paid], { fence })
  })
  process.disconnect()
}

async function main(): Promise<void> {
  const { id } = await annals.sessions.create({})
  const request_id = crypto.randomUUID()
  const first = fork(process.argv[1]!, [id, request_id])
  await once(first, 'message')
  first.kill('SIGKILL')
  const open = (await annals.runs.requests({ session_id: id }).page()).items
  for (const { id: asked, call, call_sha256 } of open) {
    console.log(`approved: ${JSON.stringify(call!.arguments)}`)
    await annals.runs.resolve(asked, { decision: 'approve', by: 'bob', call_sha256: call_sha256! })
  }
  await once(fork(process.argv[1]!, [id, request_id]), 'exit')
  for (const { type } of (await annals.sessions.events(id).page()).items) console.log(type)
}

const [session_id, request_id] = process.argv.slice(2)
await (session_id ? pay(session_id, request_id!) : main())
