import { appendFileSync, openSync, readSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { isMainThread } from 'node:worker_threads'
import { type LoopLine, NOTED_MS } from './loop_lines.ts'

/*
 * Runs inside the service, loaded by `--import` before anything of its own: notes each time at which the event loop
 * stood, into the file named by SIEGE_LOOP_FILE. On a busy machine a loop also stands because its thread waits for a
 * processor, which is not the service's doing; so each line has the time that the thread spent on one.
 */

const TICK_MS = 10
const SWEPT_MS = 200

if (isMainThread && process.env.SIEGE_LOOP_FILE) watch(process.env.SIEGE_LOOP_FILE)

function watch(file: string): void {
  const note = (line: LoopLine) => appendFileSync(file, `${JSON.stringify(line)}\n`)
  // That of the thread that opens it. Time on a processor, and time ready to run without one, in ns.
  const schedule = openSync('/proc/thread-self/schedstat', 'r')
  const buffer = Buffer.alloc(128)
  const read = () => {
    const length = readSync(schedule, buffer, 0, buffer.length, 0)
    const [on_cpu = 0, waited = 0] = buffer.toString('latin1', 0, length).split(' ').map(Number)
    return { at: performance.now(), cpu_ms: on_cpu / 1e6, waited_ms: waited / 1e6 }
  }
  let last = read()
  const tick = () => {
    const now = read()
    const stood_ms = now.at - last.at - TICK_MS
    if (stood_ms >= NOTED_MS) {
      note({
        kind: 'stood',
        stood_ms,
        cpu_ms: now.cpu_ms - last.cpu_ms,
        waited_ms: now.waited_ms - last.waited_ms,
      })
    }
    last = now
  }
  setInterval(tick, TICK_MS).unref()

  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  // What is left when everything that can go has gone. The collection itself is none of the service's standing.
  process.on('SIGUSR2', () => {
    tick()
    collect()
    // Buffers are given back beside the loop, some after the collection that found them.
    setTimeout(() => {
      collect()
      const { heapUsed, external } = process.memoryUsage()
      note({ kind: 'kept', megabytes: Math.round((heapUsed + external) / 1e6) })
      last = read()
    }, SWEPT_MS)
    last = read()
  })
}
