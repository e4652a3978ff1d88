import { Agent, request } from 'node:http'
import type { ServiceNode } from '../world/node.ts'
import type { Traffic } from './traffic.ts'

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
  body?: unknown
  headers?: Record<string, string>
  wait_ms?: number
}

/** One client's connections to the nodes, one to each. */
export class Caller {
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 1 })
  private readonly traffic: Traffic

  constructor(traffic: Traffic) {
    this.traffic = traffic
  }

  /** Sends a request once. Never throws. */
  async call(node: ServiceNode, { method, path, token, body, headers, wait_ms }: Call): Promise<Answer> {
    const payload = body === undefined ? undefined : JSON.stringify(body)
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
              'content-type': 'application/json',
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
    this.traffic.count(answer, `${method} ${path.replace(/[0-9a-f-]{36}/, ':id').split('?', 1)[0]}`)
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
