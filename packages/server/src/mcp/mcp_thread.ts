import { workerData } from 'node:worker_threads'
import { type CallBack, serveWork } from '@annals/kits/threads/serve_work.js'
import { VERSION } from '@annals/kits/version.js'
import { mcpOverHttp } from '@annals/mcp'
import type { ApiCall, McpAnswer, McpWork } from './mcp_on_thread.js'

/** Nobody resolves it: calls to it are answered by the service. */
const HERE = 'http://annals.invalid'

const answer = mcpOverHttp(VERSION, workerData as string[])

serveWork(
  (call): McpWork => ({
    answer: async ({ headers, body, token, may_write }) => {
      const asked = new Request(`${HERE}/mcp`, { method: 'POST', headers })
      const response = await answer(asked, body, { url: HERE, token, fetch: fetchBy(call), may_write })
      const text = await response.text()
      return { status: response.status, headers: Object.fromEntries(response.headers), text }
    },
  }),
)

function fetchBy(call: CallBack): typeof fetch {
  return async (input, init) => {
    const { method = 'GET', headers, body } = init ?? {}
    const asked: ApiCall = {
      url: String(input),
      method,
      headers: [...new Headers(headers)],
      body: body as string,
    }
    const { text, ...answered } = (await call(asked)) as McpAnswer
    return new Response(text, answered)
  }
}
