// Input between a client and its queue: a worker crashes right after it has taken a message. With WITHOUT=1 the queue is
// a list in memory, and the message is gone.
import { Annals } from '@annals/client'

const annals = new Annals({ url: process.env.ANNALS_URL!, token: process.env.ANNALS_API_KEY! })
const { id: session_id } = await annals.sessions.create({})
const blob = { role: 'user', content: 'Cancel my order' }
const queue: (typeof blob)[] = []

async function work(owner: string, crashes: boolean): Promise<void> {
  if (process.env.WITHOUT) {
    const taken = queue.shift()
    if (taken && !crashes) await annals.sessions.appendMessage(session_id, { blob: taken })
    return
  }
  for (const { fence, inputs } of await annals.runs.claim({ owner, ttl_ms: 1_000, wait_ms: 5_000 })) {
    if (crashes) return
    await annals.sessions.appendBatch(session_id, [], { apply: inputs.map(({ id }) => id), fence })
    await annals.runs.releaseLease(session_id, fence)
  }
}

if (process.env.WITHOUT) queue.push(blob)
else await annals.runs.send(session_id, { mode: 'queue', kind: 'message', blob })
await work('a', true)
await work('b', false)
const stored = (await annals.sessions.messages(session_id).page()).items
console.log(`${stored.length} of 1 messages are in the log`)
process.exitCode = stored.length === 1 ? 0 : 1
