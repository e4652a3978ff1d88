import { Agent, type IncomingHttpHeaders, request } from 'node:http'

/** What became of a request: a status, a connection that the service closed, or no answer in time. */
export type Outcome = number | 'closed' | 'refused' | 'unanswered'

const LOOK_MS = 250

export interface Call {
  method?: string
  path: string
  key?: string | undefined
  /** Sent as it is where it is text or bytes, as JSON otherwise. */
  body?: unknown
  headers?: Record<string, string>
  wait_ms?: number
  /** Looked at every now and then: whether the answer would come too late. */
  isLate?: () => boolean
}

export interface Answer {
  outcome: Outcome
  text: string
  headers: IncomingHttpHeaders
  took_ms: number
}

export interface CallerOptions {
  sockets_max?: number
  /** The address of this machine that requests come from. */
  from?: string | undefined
}

/** One client's connections, kept alive. Its calls never throw. */
export class Caller {
  private readonly agent: Agent
  private readonly url: string

  constructor(url: string, { sockets_max = 64, from }: CallerOptions = {}) {
    this.url = url
    this.agent = new Agent({ keepAlive: true, maxSockets: sockets_max, ...(from && { localAddress: from }) })
  }

  call({ method = 'GET', path, key, body, headers = {}, wait_ms = 10_000, isLate }: Call): Promise<Answer> {
    const payload =
      body === undefined || typeof body === 'string' || body instanceof Buffer ? body : JSON.stringify(body)
    const began = performance.now()
    return new Promise((resolve) => {
      let settled = false
      const end = (outcome: Outcome, text = '', answered: IncomingHttpHeaders = {}) => {
        if (settled) return
        settled = true
        clearTimeout(timer)
        clearInterval(looking)
        resolve({ outcome, text, headers: answered, took_ms: performance.now() - began })
      }
      const call = request(
        `${this.url}${path}`,
        {
          method,
          agent: this.agent,
          headers: {
            ...(key !== undefined && { authorization: `Bearer ${key}` }),
            ...(payload !== undefined && {
              'content-type': 'application/json',
              'content-length': Buffer.byteLength(payload),
            }),
            ...headers,
          },
        },
        (response) => {
          const chunks: Buffer[] = []
          response.on('data', (chunk: Buffer) => chunks.push(chunk))
          response.on('error', () => end('closed'))
          response.on('close', () => {
            if (response.complete)
              end(response.statusCode!, Buffer.concat(chunks).toString('utf8'), response.headers)
            else end('closed')
          })
        },
      )
      const giveUp = () => {
        end('unanswered')
        call.destroy()
      }
      const timer = setTimeout(giveUp, wait_ms)
      const looking = isLate && setInterval(() => isLate() && giveUp(), LOOK_MS)
      call.on('error', (error: NodeJS.ErrnoException) =>
        end(error.code === 'ECONNREFUSED' ? 'refused' : 'closed'),
      )
      call.end(payload)
    })
  }

  close(): void {
    this.agent.destroy()
  }
}

/** The `data` of an answer in the envelope; undefined where it is none. */
export function dataOf<Data>({ text }: Answer): Data | undefined {
  try {
    return (JSON.parse(text) as { data?: Data }).data
  } catch {
    return undefined
  }
}
