// The permission callback of the Claude Agent SDK asks a person through Annals. The process is killed while it waits; a
// second one, with the same call, finds the answer and goes on.
//
//     npx tsc -p tsconfig.examples.json
//     ANNALS_URL=http://127.0.0.1:8029 ANNALS_API_KEY=sk-… node examples/dist/agents/claude_permission.js
//
// It runs offline: instead of `query({ …, options: { canUseTool } })`, it calls the callback as the SDK does.
import { fork } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { Annals } from '@annals/client'
import type { CanUseTool } from '@anthropic-ai/claude-agent-sdk'

const annals = new Annals({ url: process.env.ANNALS_URL!, token: process.env.ANNALS_API_KEY! })

/** One request for one call of a session, whichever process asks. */
function requestId(...parts: unknown[]): string {
  const digits = createHash('sha256').update(JSON.stringify(parts)).digest('hex')
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(13, 16)}-8${digits.slice(17, 20)}-${digits.slice(20, 32)}`
}

const canUseToolOf = (session_id: string): CanUseTool => {
  return async (name, input, { signal }) => {
    const id = requestId(session_id, name, input)
    let asked = await annals.runs.request(session_id, {
      id,
      kind: 'approval',
      call: { name, arguments: input },
    })
    process.send!('asked')
    if (asked.state === 'open')
      for await (const { event, data } of annals.runs.follow(session_id, { signal })) {
        if (event === 'request' && data.id === id) asked = data
        if (asked.state !== 'open') break
      }
    if (asked.decision === 'approve') return { behavior: 'allow', updatedInput: input }
    return { behavior: 'deny', message: `${asked.by ?? 'nobody'} did not allow it` }
  }
}

const [, , session_id] = process.argv
if (session_id === undefined) {
  const { id } = await annals.sessions.create({})
  const first = fork(process.argv[1]!, [id])
  await once(first, 'message')
  first.kill('SIGKILL')
  await once(first, 'exit')
  for await (const { id: asked, call, call_sha256 } of annals.runs.requests({ session_id: id })) {
    console.log(`a person allows ${call!.name} ${JSON.stringify(call!.arguments)}`)
    await annals.runs.resolve(asked, { decision: 'approve', by: 'ada', call_sha256: call_sha256! })
  }
  await once(fork(process.argv[1]!, [id]), 'exit')
} else {
  const options = { signal: new AbortController().signal, toolUseID: 'toolu_1', requestId: '1' }
  const allowed = await canUseToolOf(session_id)('Bash', { command: 'npm publish' }, options)
  console.log(`the second process: ${JSON.stringify(allowed)}`)
  process.disconnect()
}
