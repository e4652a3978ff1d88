// An approval that ran other arguments: the agent thinks again while a person reads. With WITHOUT=1 the yes is for
// whatever comes first when it arrives.
import { Annals, AnnalsError } from '@annals/client'

const annals = new Annals({ url: process.env.ANNALS_URL!, token: process.env.ANNALS_API_KEY! })
const { id } = await annals.sessions.create({})
const ask = (eur: number) =>
  annals.runs.request(id, { kind: 'approval', call: { name: 'pay', arguments: { eur } } })

const read = await ask(5)
console.log(`the person reads: pay ${JSON.stringify(read.call!.arguments)}`)
await annals.runs.resolve(read.id, { decision: 'deny', by: 'the agent, which thought again' })
const next = await ask(5_000)
const yes = { decision: 'approve', by: 'ada' } as const
let ran: unknown
if (process.env.WITHOUT) {
  const [first] = (await annals.runs.requests({ session_id: id }).page()).items
  ran = first!.call!.arguments
} else
  try {
    // The digest of what the person has read.
    await annals.runs.resolve(next.id, { ...yes, call_sha256: read.call_sha256! })
    ran = next.call!.arguments
  } catch (error) {
    if (!(error instanceof AnnalsError)) throw error
  }
console.log(ran === undefined ? 'nothing was approved' : `ran: pay ${JSON.stringify(ran)}`)
process.exitCode = ran === undefined ? 0 : 1
