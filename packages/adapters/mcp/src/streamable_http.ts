import { Annals } from '@annals/client'
import { parseAnswer, writeJson } from '@annals/messages/json'
import {
  createMcpHandler,
  localhostAllowedOrigins,
  originValidationResponse,
} from '@modelcontextprotocol/server'
import { annalsMcp } from './server.js'

/** Time limit of a tool's call of the API, retry included. */
const TIMEOUT_MS = 20_000

/** Whom a request is from, whose key was checked already. */
export interface McpCaller {
  /** The service's URL, as `fetch` takes it. */
  url: string
  /** The API key, with which the tools call. */
  token: string
  fetch: typeof fetch
  may_write: boolean
}

/**
 * Answers requests of Streamable HTTP, each by itself: no session of the protocol is kept, and no stream stays open, so
 * that every answer ends. The request's body is given apart, as JSON that was parsed.
 * @param origins whose pages may call, as URLs, beside those of this machine; '*' for all
 */
export function mcpOverHttp(
  version: string,
  origins: string[],
): (request: Request, body: unknown, caller: McpCaller) => Promise<Response> {
  const handler = createMcpHandler(
    ({ authInfo }) => {
      const { url, token, fetch, may_write } = authInfo!.extra!.caller as McpCaller
      const exact = { parse: parseAnswer, stringify: writeJson }
      const annals = new Annals({ url, token, fetch, retries: 1, timeout_ms: TIMEOUT_MS, ...exact })
      return annalsMcp({ annals, may_write, version })
    },
    { maxSubscriptions: 0, keepAliveMs: 0 },
  )
  const hosts = [...localhostAllowedOrigins(), ...origins.flatMap(hostOf)]
  return async (request, parsedBody, caller) => {
    const refusal = origins.includes('*') ? undefined : originValidationResponse(request, hosts)
    if (refusal) return refusal
    const authInfo = { token: caller.token, clientId: '', scopes: [], extra: { caller } }
    return handler.fetch(request, { parsedBody, authInfo })
  }
}

function hostOf(origin: string): string[] {
  return URL.canParse(origin) ? [new URL(origin).hostname] : []
}
