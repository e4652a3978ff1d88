import cluster from 'node:cluster'
import { AggregatorRegistry, type Registry } from 'prom-client'
import { type FromPrimary, type FromWorker, ours } from './messages.js'

/** The process that started this one, and all that it started. */
export interface Primary {
  /** Resolves with why this worker shall end: its primary said so, or is gone. */
  readonly ending: Promise<string>
  tellReady(url: string): void
  /**
   * Takes leave of the primary, so that this process can end: resolves when it hands over no connection any more. One
   * that it had handed to a process that just ends would stay open with nobody to answer.
   */
  leave(): Promise<void>
  /** What this worker's registry holds becomes part of `metricsOfAll`. */
  shareMetrics(registry: Registry): void
  /** The metrics of all workers, added up, as text; undefined when not all of them answered. */
  metricsOfAll(): Promise<string | undefined>
}

/** The primary of this process; undefined where it was started by nobody's primary. */
export function findPrimary(): Primary | undefined {
  const { worker } = cluster
  if (!worker || !process.send) return undefined
  const waiting = new Map<number, (text: string | undefined) => void>()
  let requests = 0
  const ending = new Promise<string>((resolve) => {
    process.on('message', (message) => {
      const said = ours<FromPrimary>(message)
      if (said?.annals === 'stop') resolve('The primary stops')
      if (said?.annals === 'metrics') {
        waiting.get(said.request)?.(said.text)
        waiting.delete(said.request)
      }
    })
    worker.on('disconnect', () => {
      // Without this, Node ends the process here, and what was accepted would not be answered.
      worker.exitedAfterDisconnect = true
      for (const answer of waiting.values()) answer(undefined)
      waiting.clear()
      resolve('The primary is gone')
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
