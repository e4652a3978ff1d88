import { type ForkOptions, fork } from 'node:child_process'
import { once } from 'node:events'
import { endWithUs } from './children.ts'
import { LabFailure } from './failure.ts'

type Report = { result: unknown } | { failure: string }

/** Runs a job in a separate process, and returns its result. @throws LabFailure with its reason */
export async function orderOf<Result>(
  module: URL,
  order: object,
  { args = [], ...options }: ForkOptions & { args?: string[] } = {},
): Promise<Result> {
  const child = endWithUs(fork(module, args, options))
  const ended = once(child, 'exit').then(([code]): Report => ({ failure: `its process ended with ${code}` }))
  const reported = once(child, 'message').then(([report]) => report as Report)
  child.send(order)
  const report = await Promise.race([reported, ended])
  child.kill()
  if ('failure' in report) throw new LabFailure(`The load failed: ${report.failure}`)
  return report.result as Result
}

/** The main loop of such a process: waits for its job, runs it, and reports the result. */
export function carryOut<Order>(work: (order: Order) => Promise<unknown>): void {
  // The parent is gone, for whatever reason.
  process.once('disconnect', () => process.exit())
  process.once('message', (order: Order) => {
    void work(order)
      .then((result): Report => ({ result }))
      .catch((error: Error): Report => ({ failure: error.message }))
      .then((report) => process.send!(report))
  })
}
