import {
  Agent,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestOptions as NodeRequestOptions,
} from 'node:http'

/** Every answer under /api/v1 and /admin/v1. */
export interface Envelope<T> {
  code: number
  error: string
  msg: string
  data: T
}

export interface Answer<T = Record<string, unknown>> {
  status: number
  headers: IncomingHttpHeaders
  /** The body as it came, for what must be compared to the byte. */
  text: string
  /** The body parsed. Throws when it is not JSON. */
  readonly json: Envelope<T>
}

export type Query = Record<string, string | number | boolean | undefined>

export interface RequestOptions {
  /** Sent as JSON, with its content type. */
  body?: unknown
  /** Sent as it is. A list is sent chunk by chunk, without a content length. */
  rawBody?: string | Buffer | string[]
  headers?: Record<string, string>
  query?: Query | undefined
  /** A connection of its own instead of a kept one. */
  newConnection?: boolean
}

/** An HTTP client of one service and one caller. Paths and headers are sent exactly as given. */
export interface HttpClient {
  request<T = Record<string, unknown>>(
    method: string,
    path: string,
    options?: RequestOptions,
  ): Promise<Answer<T>>
  close(): void
}

/** A client that presents `token`, or, without one, no Authorization header. */
export function httpClient(url: string, token?: string): HttpClient {
  const agent = new Agent({ keepAlive: true, maxSockets: 128 })
  const { hostname, port } = new URL(url)
  return {
    request: (method, path, options = {}) => {
      const headers: Record<string, string> = {}
      if (token !== undefined) headers.Authorization = `Bearer ${token}`
      if (options.body !== undefined || options.rawBody !== undefined)
        headers['Content-Type'] = 'application/json'
      const payload = options.body === undefined ? options.rawBody : JSON.stringify(options.body)
      if (payload !== undefined && !Array.isArray(payload)) {
        headers['Content-Length'] = String(Buffer.byteLength(payload))
      }
      const target = {
        hostname,
        port,
        method,
        path: path + queryString(options.query),
        agent: options.newConnection ? false : agent,
        headers: { ...headers, ...options.headers },
      }
      return exchange(target, payload)
    },
    close: () => agent.destroy(),
  }
}

function queryString(query: Query | undefined): string {
  const pairs = Object.entries(query ?? {}).filter(([, value]) => value !== undefined)
  if (pairs.length === 0) return ''
  return `?${pairs.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join('&')}`
}

/**
 * Resolves with the answer even when the server closes the connection before it has read the whole request,
 * which it may do with a body that is too large.
 */
function exchange<T>(
  target: NodeRequestOptions,
  payload: string | Buffer | string[] | undefined,
): Promise<Answer<T>> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(target, (response) => {
      readAnswer<T>(response).then(resolve, reject)
    })
    request.on('error', (cause: NodeJS.ErrnoException) => {
      const failure = new Error(`${target.method} ${target.path}: ${cause.message}`, { cause })
      reject(Object.assign(failure, { code: cause.code }))
    })
    if (Array.isArray(payload)) {
      for (const chunk of payload) request.write(chunk)
      request.end()
    } else {
      request.end(payload)
    }
  })
}

/** Reads a response to its end. */
export async function readAnswer<T>(response: IncomingMessage): Promise<Answer<T>> {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString('utf8')
  return {
    status: response.statusCode!,
    headers: response.headers,
    text,
    get json() {
      return JSON.parse(text) as Envelope<T>
    },
  }
}
