import { parentPort, workerData } from 'node:worker_threads'
import { mcpOverHttp } from '@annals/mcp'
import { VERSION } from '../version.js'
import type { CallOutcome, McpOrder, McpReport } from './mcp_on_thread.js'

/** Nobody resolves it: calls to it are answered by the service. */
const HERE = 'http://annals.invalid'

/** The thread itself: answers requests of the Model Context Protocol, many at once, and has the service make its calls. */
const answer = mcpOverHttp(VERSION, workerData as string[])
const calls = new Map<number, (outcome: CallOutcome) => void>()
let last_call = 0

const report = (message: McpReport) => parentPort!.postMessage(message)

parentPort!.on('message', async (message: McpOrder | CallOutcome) => {
  if ('call' in message) return calls.get(message.call)?.(message)
  const { number, headers, body, token, may_write } = message
  try {
    const asked = new Request(`${HERE}/mcp`, { method: 'POST', headers })
    const response = await answer(asked, body, { url: HERE, token, fetch: callFor(number), may_write })
    const text = await response.text()
    report({ number, status: response.status, headers: Object.fromEntries(response.headers), text })
  } catch (error) {
    report({ number, fault: error instanceof Error ? (error.stack ?? error.message) : String(error) })
  }
})

function callFor(number: number): typeof fetch {
  return (input, init) => {
    const call = ++last_call
    const { method = 'GET', headers, body } = init ?? {}
    report({
      number,
      call,
      url: String(input),
      method,
      headers: [...new Headers(headers)],
      body: body as string,
    })
    return new Promise((resolve, reject) => {
      calls.set(call, (outcome) => {
        calls.delete(call)
        if ('failed' in outcome) reject(new TypeError('the call was not answered'))
        else resolve(new Response(outcome.text, { status: outcome.status, headers: outcome.headers }))
      })
    })
  }
}
