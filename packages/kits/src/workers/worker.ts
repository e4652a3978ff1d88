import cluster from 'node:cluster'
import { AggregatorRegistry, type Registry } from 'prom-client'

export interface Primary {
  /** Resolves when this worker must end, with for how many ms it serves on: its primary said so, or is gone. */
  readonly ending: Promise<number>
  tellReady(url: string): void
  /**
   * Says goodbye to the primary, so that this process can end: resolves when no more connections are handed to it. A
   * connection handed to a process that is just ending would stay open with nobody to answer.
   */
  leave(): Promise<void>
  /** Includes this worker's registry in `metricsOfAll`. */
  shareMetrics(registry: Registry): void
  /** The summed metrics of all workers, as text; undefined if not all of them answered. */
  metricsOfAll(): Promise<string | undefined>
}

export function findPrimary(): Primary | undefined {
  const { worker } = cluster
  if (!worker || !process.send) return undefined
  const waiting = new Map<number, (text: string | undefined) => void>()
  let requests = 0
  const ending = new Promise<number>((resolve) => {
    process.on('message', (message) => {
      const said = ours<FromPrimary>(message)
      if (said?.annals === 'stop') resolve(said.delay_ms)
      if (said?.annals === 'metrics') {
        waiting.get(said.request)?.(said.text)
        waiting.delete(said.request)
      }
    })
    worker.on('disconnect', () => {
      // Otherwise Node would end the process here, without answering the accepted requests.
      worker.exitedAfterDisconnect = true
      for (const answer of waiting.values()) answer(undefined)
      waiting.clear()
      resolve(0)
    })
  })
  const tell = (message: FromWorker) => {
    if (worker.isConnected()) worker.send(message, () => {})
  }
  return {
    ending,
    tellReady: (url) => tell({ annals: 'ready', url }),
    leave: () =>
      new Promise((resolve) => {
        if (!worker.isConnected()) return resolve()
        worker.once('disconnect', resolve)
        worker.disconnect()
      }),
    shareMetrics: (registry) => {
      AggregatorRegistry.setRegistries(registry)
      new AggregatorRegistry()
    },
    metricsOfAll: () =>
      new Promise((resolve) => {
        if (!worker.isConnected()) return resolve(undefined)
        requests += 1
        waiting.set(requests, resolve)
        tell({ annals: 'metrics', request: requests })
      }),
  }
}

/**
 * Messages between a worker and its primary. Others use the same channel (node:cluster, prom-client), so ours have
 * the member `annals`.
 *
 *   worker → primary   ready: it listens · metrics: send me those of all workers
 *   primary → worker   stop: serve on for so many ms, answer what you have accepted, and end
 *                      metrics: the result (undefined if incomplete)
 */
export type FromWorker = { annals: 'ready'; url: string } | { annals: 'metrics'; request: number }
export type FromPrimary =
  | { annals: 'stop'; delay_ms: number }
  | { annals: 'metrics'; request: number; text: string | undefined }

export function ours<M extends FromWorker | FromPrimary>(message: unknown): M | undefined {
  return typeof message === 'object' && message !== null && 'annals' in message ? (message as M) : undefined
}
