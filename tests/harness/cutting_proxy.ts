import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/**
 * What becomes of one request and its answer: the request never arrives; it arrives and its answer is lost; of
 * the answer only a part comes.
 */
export type Cut = 'lose_request' | 'lose_answer' | 'cut_answer'

/** A TCP proxy before a service, which breaks connections as its script says. */
export interface CuttingProxy {
  url: string
  /** What happens to the requests that come next, one each; those after them pass untouched. */
  script: Array<Cut | undefined>
  /** While it is true, no connection gets through; those that are open break. */
  cutOff(is_off: boolean): void
  close(): Promise<void>
}

export async function cuttingProxy(serviceUrl: string): Promise<CuttingProxy> {
  const { hostname, port } = new URL(serviceUrl)
  const script: CuttingProxy['script'] = []
  const sockets = new Set<Socket>()
  let is_cut_off = false
  const server = createServer((client) => {
    if (is_cut_off) return client.destroy()
    const service = connect(Number(port), hostname)
    for (const socket of [client, service]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        service.destroy()
      })
    }
    forward(client, service, script)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    script,
    cutOff: (is_off) => {
      is_cut_off = is_off
      if (is_off) for (const socket of sockets) socket.destroy()
    },
    close: async () => {
      server.close()
      for (const socket of sockets) socket.destroy()
      await once(server, 'close')
    },
  }
}

/** A request of a test is small and comes in one piece, and its answer is asked for before the next one. */
function forward(client: Socket, service: Socket, script: CuttingProxy['script']): void {
  let cut: Cut | undefined
  client.on('data', (request) => {
    cut = script.shift()
    if (cut === 'lose_request') client.destroy()
    else service.write(request)
  })
  service.on('data', (answer) => {
    if (cut === undefined) return client.write(answer)
    if (cut === 'lose_answer') return client.destroy()
    client.write(answer.subarray(0, answer.length - 10), () => client.destroy())
  })
}
