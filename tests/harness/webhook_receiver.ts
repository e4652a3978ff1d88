import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'

/** A delivery as it arrived, its signature checked. */
export interface Delivery {
  id: string
  type: string
  data: {
    session_id: string
    seq: number
    entry: Record<string, unknown> | null
    request?: Record<string, unknown>
    input?: Record<string, unknown> | null
  }
}

/** A receiver of webhooks on this machine. */
export interface Receiver {
  url: string
  /** What was answered 2xx, in order. */
  received: Delivery[]
  /** All requests, whatever they were answered. */
  requests: number
  close(): Promise<void>
}

/**
 * Starts a receiver. `answer` gives the status for a delivery, after whatever time, or answers by itself and gives
 * undefined.
 */
export async function startReceiver(
  secret: string,
  answer: (delivery: Delivery, response: ServerResponse) => number | undefined | Promise<number> = () => 204,
  port = 0,
): Promise<Receiver> {
  const receiver = { url: '', received: [] as Delivery[], requests: 0 }
  const server = createServer(async (request, response) => {
    const body = await textOf(request)
    receiver.requests += 1
    const headers = request.headers as Record<string, string>
    new Webhook(secret).verify(body, headers)
    const delivery = { id: headers['webhook-id']!, ...(JSON.parse(body) as Omit<Delivery, 'id'>) }
    const status = await answer(delivery, response)
    if (status === undefined) return
    if (status < 300) receiver.received.push(delivery)
    response.writeHead(status, { location: `${receiver.url}/elsewhere` }).end('x')
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return Object.assign(receiver, {
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  })
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk as string
  return text
}
