import { parentPort } from 'node:worker_threads'
import { AnnalsError } from '../errors.js'
import type { TakenBytes } from '../http/request/take_out_bytes.js'
import { ThreadWork } from '../service/thread_work.js'
import type { WorkOrder, WorkReport } from './work_thread.js'

/** The thread itself: executes one job after the other and reports each result. */
const work = new ThreadWork()

parentPort!.on('message', async ({ number, name, values }: WorkOrder) => {
  let report: WorkReport
  try {
    const result = await (work[name] as (...values: unknown[]) => unknown)(...values)
    report = { number, result: withPlainError(result) }
  } catch (error) {
    report = { number, fault: error instanceof Error ? (error.stack ?? error.message) : String(error) }
  }
  const result =
    'result' in report ? (report.result as { attachments?: TakenBytes[] } | undefined) : undefined
  // Handed over instead of copied.
  parentPort!.postMessage(
    report,
    (result?.attachments ?? []).map(({ bytes }) => bytes.buffer as ArrayBuffer),
  )
})

/** An error loses its class, and with it its name, on the way between threads. */
function withPlainError(result: unknown): unknown {
  const { error } = (result ?? {}) as { error?: unknown }
  return error instanceof AnnalsError
    ? { ...(result as object), error: { error: error.error, message: error.message } }
    : result
}
