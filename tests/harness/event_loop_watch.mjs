/**
 * Preloaded into a service (`node --import`): watches how long its event loop works at a stretch, and tells it on the
 * Unix socket LOOP_WATCH_SOCKET, where each connection gets the longest stretch since the one before.
 *
 * A stretch is what lies between two ticks of a timer of 1 ms. It is measured in time of the thread's own on a processor,
 * as far as the system tells it: on a busy machine the time between is longer for no fault of the service.
 */
import { openSync, readSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { isMainThread } from 'node:worker_threads'

if (isMainThread && process.env.LOOP_WATCH_SOCKET) {
  const clock = processorClock() ?? (() => performance.now())
  let ticked_at = clock()
  let longest_ms = 0
  const tick = () => {
    const now = clock()
    longest_ms = Math.max(longest_ms, now - ticked_at)
    ticked_at = now
  }
  setInterval(tick, 1).unref()
  createServer((connection) => {
    tick()
    connection.on('error', () => {})
    connection.end(JSON.stringify({ longest_ms }))
    longest_ms = 0
  })
    .listen(process.env.LOOP_WATCH_SOCKET)
    .unref()
  process.once('exit', () => rmSync(process.env.LOOP_WATCH_SOCKET, { force: true }))
}

/** Time of the main thread on a processor, in ms, which Linux tells to a few ms; undefined elsewhere. */
function processorClock() {
  const buffer = Buffer.alloc(64)
  try {
    const file = openSync(`/proc/self/task/${process.pid}/schedstat`, 'r')
    const read = () =>
      Number.parseInt(buffer.toString('latin1', 0, readSync(file, buffer, 0, 64, 0)), 10) / 1e6
    return read() > 0 ? read : undefined
  } catch {
    return undefined
  }
}
