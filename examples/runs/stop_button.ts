// A stop button: a person presses it while a tool is about to send a mail. With WITHOUT=1 the wish is an event in the log,
// which the runner reads when its turn is over.
import { setTimeout as sleep } from 'node:timers/promises'
import { Annals } from '@annals/client'

const annals = new Annals({ url: process.env.ANNALS_URL!, token: process.env.ANNALS_API_KEY! })
const { id } = await annals.sessions.create({})
const stop = new AbortController()
const over = new AbortController()

async function listen(): Promise<void> {
  for await (const { event, data } of annals.runs.follow(id, { signal: over.signal }))
    if (event === 'input' && data.mode === 'interrupt') stop.abort()
}

async function turn(): Promise<string> {
  try {
    await sleep(2_000, undefined, { signal: stop.signal }) // The tool writes the mail.
    return 'mail sent'
  } catch {
    return 'stopped before the mail was sent'
  }
}

const listening = process.env.WITHOUT ? undefined : listen()
const running = turn()
await sleep(300)
if (process.env.WITHOUT) await annals.sessions.append(id, { type: 'stop', data: {} })
else await annals.runs.send(id, { mode: 'interrupt', kind: 'event', type: 'stop', data: {} })
const end = await running
over.abort()
await listening
console.log(end)
process.exitCode = stop.signal.aborted ? 0 : 1
