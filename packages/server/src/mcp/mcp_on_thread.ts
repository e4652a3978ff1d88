import { WorkThread } from '@annals/kits/threads/work_thread.js'

const HEAP_MEGABYTES = 128
/** Most requests at once. They spend most of their time waiting for the service. */
const REQUESTS_MAX = 8

/** A request, whose key was checked already. `body` is JSON that was parsed. */
export interface McpRequest {
  headers: Record<string, string>
  body: unknown
  token: string
  may_write: boolean
}

export interface McpAnswer {
  status: number
  headers: Record<string, string>
  text: string
}

/** A call of the API that a tool makes. */
export interface ApiCall {
  url: string
  method: string
  headers: [string, string][]
  body: string | undefined
}

export interface McpWork {
  answer(request: McpRequest): Promise<McpAnswer>
}

/**
 * The thread that answers requests of the Model Context Protocol. Its library takes a tenth of a second to load, and
 * reading what tools ask for as long again, for which the event loop would stand.
 * @param origins whose pages may call, as URLs
 */
export function mcpThread(origins: string[]): WorkThread<McpWork> {
  return new WorkThread({
    file: new URL('./mcp_thread.js', import.meta.url),
    heap_megabytes: HEAP_MEGABYTES,
    jobs_max: REQUESTS_MAX,
    data: origins,
  })
}

/** Answers the calls of tools by `fetch`. */
export function answerCalls(fetch: typeof globalThis.fetch) {
  return async ({ url, body, ...init }: ApiCall): Promise<McpAnswer> => {
    const response = await fetch(url, { ...init, body: body ?? null })
    const headers = Object.fromEntries(response.headers)
    return { status: response.status, headers, text: await response.text() }
  }
}
