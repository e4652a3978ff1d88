import cliProgress from 'cli-progress'
import { TimeLeft } from './time_left.js'
import { visible } from './visible.js'

const LINE_EVERY_MS = 5_000
const BAR_EVERY_MS = 1_000
const MEGABYTE = 1_000_000

export type Unit = 'entries' | 'bytes' | 'rows' | 'sessions' | 'users' | 'spaces' | 'statements' | 'requests'

/** The progress of long work: `done` of a total, in its own unit, and the bytes processed, if any. */
export interface Progress {
  update(done: number, bytes?: number): void
  /** Prints a message on its own line. */
  say(sentence: string): void
  stop(): void
}

/**
 * Shows progress, speed and remaining time on stderr: a bar on a terminal, otherwise a sentence every few seconds,
 * even while the work reports nothing. A total of 0 means unknown. `begun` is when the work began, by
 * `performance.now`.
 */
export function showProgress(
  task: string,
  unit: Unit,
  total: number,
  begun: number = performance.now(),
): Progress {
  const time = new TimeLeft(begun / 1000)
  let done = 0
  let bytes: number | undefined
  const measure = (): Measured => {
    const now = performance.now() / 1000
    const seconds = Math.max(now - begun / 1000, 0.001)
    const rate =
      bytes === undefined
        ? `${Math.round(done / seconds).toLocaleString('en')} ${unit}/s`
        : `${(bytes / MEGABYTE / seconds).toFixed(1)} MB/s`
    const left = time.left(total, now)
    return {
      // A project in use may have grown since it was measured.
      done: Math.min(done, total),
      amount: amountOf(done, Math.max(total, done), total === 0, unit),
      rate,
      left: left === undefined ? '' : `, ${durationOf(left)} left`,
    }
  }
  const shown = process.stderr.isTTY && total > 0 ? showBar(task, total, measure) : showLines(task, measure)
  return {
    update: (...given) => {
      ;[done, bytes] = given
      time.step(done, performance.now() / 1000)
      shown.update()
    },
    say: shown.say,
    stop: shown.stop,
  }
}

/** The same while `work` runs. */
export async function withProgress<T>(
  task: string,
  unit: Unit,
  total: number,
  work: (progress: Progress) => Promise<T>,
): Promise<T> {
  const progress = showProgress(task, unit, total)
  try {
    return await work(progress)
  } finally {
    progress.stop()
  }
}

interface Measured {
  done: number
  amount: string
  rate: string
  left: string
}

interface Shown extends Pick<Progress, 'say' | 'stop'> {
  /** The progress has changed. */
  update(): void
}

function showBar(task: string, total: number, measure: () => Measured): Shown {
  const format = `${task} [{bar}] {percentage} % | {amount}, {rate}{left}`
  const bar = new cliProgress.SingleBar(
    { format, hideCursor: true, gracefulExit: false, etaBuffer: 1, fps: 5 },
    cliProgress.Presets.rect,
  )
  const start = () => {
    const { done, ...texts } = measure()
    bar.start(total, done, texts)
  }
  const update = () => {
    const { done, ...texts } = measure()
    bar.update(done, texts)
  }
  start()
  const clock = setInterval(update, BAR_EVERY_MS).unref()
  return {
    update,
    say: (sentence) => {
      bar.stop()
      process.stderr.write(`${visible(sentence)}\n`)
      start()
    },
    stop: () => {
      clearInterval(clock)
      bar.stop()
    },
  }
}

function showLines(task: string, measure: () => Measured): Shown {
  const clock = setInterval(() => {
    const { amount, rate, left } = measure()
    process.stderr.write(`${task}: ${amount}, ${rate}${left}\n`)
  }, LINE_EVERY_MS).unref()
  return {
    update: () => {},
    say: (sentence) => process.stderr.write(`${visible(sentence)}\n`),
    stop: () => clearInterval(clock),
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
