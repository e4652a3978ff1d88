import { parentPort } from 'node:worker_threads'
import { AnnalsError } from '../errors.js'
import type { CallOutcome, WorkOrder, WorkReport } from './work_thread.js'

/** Asks the other side for something, on behalf of a job. */
export type CallBack = (...values: unknown[]) => Promise<unknown>

/** The thread itself: executes jobs as they come and reports each result. `workOf`: what a job may ask for, by name. */
export function serveWork(workOf: (call: CallBack, name: string) => object): void {
  const port = parentPort!
  const calls = new Map<number, (outcome: CallOutcome) => void>()
  let last_call = 0
  const callFor = (number: number): CallBack => {
    return (...values) => {
      const call = ++last_call
      port.postMessage({ number, call, values } satisfies WorkReport)
      return new Promise((resolve, reject) => {
        calls.set(call, (outcome) => {
          calls.delete(call)
          if ('failed' in outcome) reject(new TypeError('the call was not answered'))
          else resolve(outcome.result)
        })
      })
    }
  }
  port.on('message', async (message: WorkOrder | CallOutcome) => {
    if ('call' in message) return calls.get(message.call)?.(message)
    const { number, name, values } = message
    let report: WorkReport
    try {
      const work = workOf(callFor(number), name) as Record<string, (...values: unknown[]) => unknown>
      report = { number, result: withPlainError(await work[name]!(...values)) }
    } catch (error) {
      report = { number, fault: error instanceof Error ? (error.stack ?? error.message) : String(error) }
    }
    // Handed over instead of copied.
    const { attachments = [] } = (('result' in report && report.result) || {}) as {
      attachments?: Array<{ bytes: Uint8Array<ArrayBuffer> }>
    }
    port.postMessage(
      report,
      attachments.map(({ bytes }) => bytes.buffer),
    )
  })
}

/** An error loses its class, and with it its name, on the way between threads. */
function withPlainError(result: unknown): unknown {
  const { error } = (result ?? {}) as { error?: unknown }
  return error instanceof AnnalsError
    ? { ...(result as object), error: { error: error.error, message: error.message } }
    : result
}
