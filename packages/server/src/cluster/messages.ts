/**
 * What a worker and its primary say to each other. Others use the same channel (node:cluster, prom-client), so
 * each message of ours has the member `annals`.
 *
 *   worker → primary   ready: it listens · metrics: give me those of all workers
 *   primary → worker   stop: answer what you have accepted, and end · metrics: here they are (undefined: not all came)
 */
export type FromWorker = { annals: 'ready'; url: string } | { annals: 'metrics'; request: number }
export type FromPrimary =
  | { annals: 'stop' }
  | { annals: 'metrics'; request: number; text: string | undefined }

/** A message if it is one of ours. */
export function ours<M extends FromWorker | FromPrimary>(message: unknown): M | undefined {
  return typeof message === 'object' && message !== null && 'annals' in message ? (message as M) : undefined
}
