import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** What to do with one request. */
export type Handler = (request: IncomingMessage, response: ServerResponse) => void

export interface ScriptedServer {
  url: string
  requests: Array<{ url: string; headers: IncomingMessage['headers'] }>
  /** How many answers are not at their end, and have a client that waits for it. */
  readonly open: number
}

/** A server that treats its requests so, one after the other; the last handler has all that follow. */
export async function scriptedServer(...handlers: Handler[]): Promise<ScriptedServer> {
  const requests: ScriptedServer['requests'] = []
  let open = 0
  const server = createServer((request, response) => {
    requests.push({ url: request.url!, headers: request.headers })
    open += 1
    response.on('close', () => {
      open -= 1
    })
    request.resume()
    handlers[Math.min(requests.length, handlers.length) - 1]!(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    requests,
    get open() {
      return open
    },
  }
}

/** Answers with a success of Annals. */
export function answerOk(data: unknown): Handler {
  return answerJson(200, { code: 0, error: '', msg: 'ok', data })
}

/** Answers with a refusal of Annals. */
export function refuse(status: number, error: string): Handler {
  return answerJson(status, { code: status, error, msg: `This is ${error}.` })
}

/** Sends the head of an answer and half of what it promises, and cuts the connection. */
export function cutInTheMiddle(): Handler {
  return (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' })
    response.write('{"code":0,"error":"","msg":"ok","data":{"seq":')
    setTimeout(() => response.destroy(), 10)
  }
}

/** Opens a stream of events and sends these texts; `then` says how it goes on. */
export function stream(texts: string[], then: 'stays' | 'ends' | 'breaks'): Handler {
  return (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(`retry: 20\n\n${texts.join('')}`)
    if (then === 'ends') response.end()
    if (then === 'breaks') setTimeout(() => response.destroy(), 10)
  }
}

/** An entry as the tail's stream has it. */
export function entry(seq: number): string {
  return `id: ${seq}\nevent: event\ndata: ${JSON.stringify({ kind: 'event', seq })}\n\n`
}

function answerJson(status: number, body: unknown): Handler {
  return (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json', 'x-request-id': 'request-1' })
    response.end(JSON.stringify(body))
  }
}
