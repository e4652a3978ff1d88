import cliProgress from 'cli-progress'
import { doAtOnce } from './at_once.ts'

const PLAIN_LINES = 10

/** Shows on stderr how far a piece of work is: a bar on a terminal, a line now and then elsewhere. */
export class Progress {
  #shown: Shown | undefined

  /** Says something beside the bar; an empty sentence takes it away. */
  say(sentence: string): void {
    this.#shown?.say(sentence)
  }

  /** Does `work` for every item, a number of them at once, and shows how many are done. */
  async over<Item, Result>(
    task: string,
    items: readonly Item[],
    at_once_max: number,
    work: (item: Item) => Promise<Result>,
  ): Promise<Result[]> {
    const shown = process.stderr.isTTY ? bar(task, items.length) : lines(task, items.length)
    this.#shown = shown
    try {
      return await doAtOnce(items, at_once_max, async (item) => {
        const result = await work(item)
        shown.advance()
        return result
      })
    } finally {
      shown.stop()
      this.#shown = undefined
    }
  }
}

interface Shown {
  advance(): void
  say(sentence: string): void
  stop(): void
}

function bar(task: string, total: number): Shown {
  const format = `${task} [{bar}] {value} of {total}, {rate}/s, {eta_formatted} left {note}`
  const shown = new cliProgress.SingleBar({ format, hideCursor: true }, cliProgress.Presets.rect)
  const begun = performance.now()
  let done = 0
  shown.start(total, 0, { note: '', rate: 0 })
  return {
    advance: () => {
      done += 1
      shown.increment({ rate: Math.round(done / Math.max((performance.now() - begun) / 1000, 0.001)) })
    },
    say: (note) => shown.update({ note }),
    stop: () => shown.stop(),
  }
}

function lines(task: string, total: number): Shown {
  const step = Math.max(Math.ceil(total / PLAIN_LINES), 1)
  let done = 0
  return {
    advance: () => {
      done += 1
      if (done % step === 0 || done === total) process.stderr.write(`${task}: ${done} of ${total}\n`)
    },
    say: (sentence) => {
      if (sentence !== '') process.stderr.write(`${task}: ${sentence}\n`)
    },
    stop: () => {},
  }
}
