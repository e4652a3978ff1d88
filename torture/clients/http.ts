import { Agent, request } from 'node:http'
import type { ServiceNode } from '../world/node.ts'

/** After this a client gives up: later than the service lets a request wait, sooner than a cut ends. */
export const CLIENT_WAIT_MS = 4_000

/** An answer; undefined status if there was none: nobody knows whether the request took effect. */
export interface Answer {
  status: number | undefined
  data: unknown
  error: string
  retry_after: boolean
}

const NO_ANSWER: Answer = { status: undefined, data: undefined, error: 'no answer', retry_after: false }

interface Call {
  method: string
  path: string
  token: string
  /** What is sent as JSON, or as it is where it is bytes. */
  body?: unknown
  headers?: Record<string, string>
  wait_ms?: number
  /** The session may have expired. */
  may_be_gone?: boolean
}

const EXPECTED = new Set([200, 201, 409, 503])

/** Counts what the clients were answered, and keeps what no client should ever be answered. */
export class Traffic {
  requests = 0
  readonly by_status = new Map<string, number>()
  /** Answers that are neither success, nor refusal on a condition, nor "try again": with how often they came. */
  readonly unexpected = new Map<string, number>()

  count(answer: Answer, what: string): void {
    const { status, error, retry_after } = answer
    this.requests += 1
    add(this.by_status, status === undefined ? 'unanswered' : String(status))
    if (status === undefined) return
    if (!EXPECTED.has(status)) add(this.unexpected, `${status} ${error} to ${what}`)
    if (status === 503 && !retry_after) add(this.unexpected, `503 without Retry-After to ${what}`)
  }
}

function add(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

/** One client's connections to the nodes, one to each. */
export class Caller {
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 1 })
  private readonly traffic: Traffic

  constructor(traffic: Traffic) {
    this.traffic = traffic
  }

  /** Sends a request once. Never throws. */
  async call(node: ServiceNode, { may_be_gone, ...sent }: Call): Promise<Answer> {
    const { method, path, token, body, headers, wait_ms } = sent
    const bytes = Buffer.isBuffer(body) ? body : undefined
    const payload = bytes ?? (body === undefined ? undefined : JSON.stringify(body))
    const answer = await new Promise<Answer>((resolve) => {
      const timer = setTimeout(() => call.destroy(new Error('too late')), wait_ms ?? CLIENT_WAIT_MS)
      const end = (result: Answer) => {
        clearTimeout(timer)
        resolve(result)
      }
      const call = request(
        `${node.url}/api/v1${path}`,
        {
          method,
          agent: this.agent,
          headers: {
            authorization: `Bearer ${token}`,
            ...(payload !== undefined && {
              'content-type': bytes ? 'application/octet-stream' : 'application/json',
              'content-length': Buffer.byteLength(payload),
            }),
            ...headers,
          },
        },
        (response) => {
          let text = ''
          response.setEncoding('utf8')
          response.on('data', (chunk: string) => {
            text += chunk
          })
          response.on('error', () => end(NO_ANSWER))
          response.on('close', () => {
            if (response.complete)
              end(read(response.statusCode, text, response.headers['retry-after'] !== undefined))
            else end(NO_ANSWER)
          })
        },
      )
      call.on('error', () => end(NO_ANSWER))
      call.end(payload)
    })
    if (!may_be_gone || answer.status !== 404)
      this.traffic.count(answer, `${method} ${path.replace(/[0-9a-f-]{36,64}/, ':id').split('?', 1)[0]}`)
    return answer
  }

  close(): void {
    this.agent.destroy()
  }
}

function read(status: number | undefined, text: string, retry_after: boolean): Answer {
  try {
    const { data, error } = JSON.parse(text) as { data: unknown; error: string }
    return { status, data, error, retry_after }
  } catch {
    return { status, data: undefined, error: 'not the envelope', retry_after }
  }
}
