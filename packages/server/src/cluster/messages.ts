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
