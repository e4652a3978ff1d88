import { appendFileSync, openSync, readSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { isMainThread } from 'node:worker_threads'
import { readCpuTimes } from '../../lab/cpu_wait.ts'
import { type LoopLine, NOTED_MS, TURNS_MS } from './loop_lines.ts'

/**
 * Runs inside the service, loaded by `--import` before its own code: records each block of the event loop in the file
 * named by SIEGE_LOOP_FILE. On a busy machine a loop also stands still because its thread waits for a processor,
 * which is not the service's doing, so each line has the time that the thread spent on one.
 */

const TICK_MS = 10
const SWEPT_MS = 200

if (isMainThread && process.env.SIEGE_LOOP_FILE) watch(process.env.SIEGE_LOOP_FILE)

function watch(file: string): void {
  const note = (line: LoopLine) => appendFileSync(file, `${JSON.stringify(line)}\n`)
  // That of the thread that opens it.
  const schedule = openSync('/proc/thread-self/schedstat', 'r')
  const buffer = Buffer.alloc(128)
  const read = () => {
    const length = readSync(schedule, buffer, 0, buffer.length, 0)
    return { at: performance.now(), ...readCpuTimes(buffer.toString('latin1', 0, length)) }
  }
  let last = read()
  const tick = () => {
    const now = read()
    const stood_ms = now.at - last.at - TICK_MS
    if (stood_ms >= NOTED_MS) {
      note({
        kind: 'stood',
        stood_ms,
        cpu_ms: now.on_cpu_ms - last.on_cpu_ms,
        waited_ms: now.waited_ms - last.waited_ms,
      })
    }
    last = now
  }
  setInterval(tick, TICK_MS).unref()
  setInterval(() => note({ kind: 'turns', at: Date.now(), on_cpu_ms: last.on_cpu_ms }), TURNS_MS).unref()

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
