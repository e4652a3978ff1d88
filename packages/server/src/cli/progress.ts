import cliProgress from 'cli-progress'

const LINE_EVERY_MS = 5_000
const MEGABYTE = 1_000_000

export type Unit = 'entries' | 'bytes' | 'sessions' | 'users' | 'spaces'

/** How far a piece of long work is: `done` of a total, in its own unit, and the bytes that went through, if any did. */
export interface Progress {
  update(done: number, bytes?: number): void
  /** Says something on a line of its own. */
  say(sentence: string): void
  stop(): void
}

/**
 * Shows on stderr how far a piece of work is, how fast it goes and how long it will take: a bar on a terminal, a
 * sentence every few seconds elsewhere. A total of 0 is unknown. `begun` is when the work began, by `performance.now`.
 */
export function showProgress(
  task: string,
  unit: Unit,
  total: number,
  begun: number = performance.now(),
): Progress {
  const measure = (done: number, bytes?: number): Measured => {
    const seconds = Math.max((performance.now() - begun) / 1000, 0.001)
    const rate =
      bytes === undefined
        ? `${Math.round(done / seconds).toLocaleString('en')} ${unit}/s`
        : `${(bytes / MEGABYTE / seconds).toFixed(1)} MB/s`
    const isEnding = total === 0 || done === 0 || done >= total
    const left = isEnding ? '' : `, ${durationOf(((total - done) * seconds) / done)} left`
    return { amount: amountOf(done, Math.max(total, done), total === 0, unit), rate, left }
  }
  return process.stderr.isTTY && total > 0 ? showBar(task, total, measure) : showLines(task, measure)
}

interface Measured {
  amount: string
  rate: string
  left: string
}

type Measure = (done: number, bytes?: number) => Measured

function showBar(task: string, total: number, measure: Measure): Progress {
  const format = `${task} [{bar}] {percentage} % | {amount}, {rate}{left}`
  const bar = new cliProgress.SingleBar(
    { format, hideCursor: true, gracefulExit: false, etaBuffer: 1, fps: 5 },
    cliProgress.Presets.rect,
  )
  let last: [number, number | undefined] = [0, undefined]
  const start = () => bar.start(total, Math.min(last[0], total), measure(...last))
  start()
  return {
    update: (done, bytes) => {
      last = [done, bytes]
      // A project that lives on may have more by now than when it was measured.
      bar.update(Math.min(done, total), measure(done, bytes))
    },
    say: (sentence) => {
      bar.stop()
      process.stderr.write(`${sentence}\n`)
      start()
    },
    stop: () => bar.stop(),
  }
}

function showLines(task: string, measure: Measure): Progress {
  let next = performance.now() + LINE_EVERY_MS
  return {
    update: (done, bytes) => {
      if (performance.now() < next) return
      next = performance.now() + LINE_EVERY_MS
      const { amount, rate, left } = measure(done, bytes)
      process.stderr.write(`${task}: ${amount}, ${rate}${left}\n`)
    },
    say: (sentence) => process.stderr.write(`${sentence}\n`),
    stop: () => {},
  }
}

function amountOf(done: number, total: number, isUnknown: boolean, unit: Unit): string {
  const write = (count: number) =>
    unit === 'bytes' ? (count / MEGABYTE).toFixed(1) : count.toLocaleString('en')
  const name = unit === 'bytes' ? 'MB' : unit
  return isUnknown ? `${write(done)} ${name}` : `${write(done)} of ${write(total)} ${name}`
}

function durationOf(seconds: number): string {
  if (seconds < 60) return `${Math.ceil(seconds)} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
