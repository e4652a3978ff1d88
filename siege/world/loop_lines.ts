import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs'

/** A loop that stands for less is not noted. */
export const NOTED_MS = 20
/** How often it is noted that the loop turns. */
export const TURNS_MS = 500

/** A time at which the loop stood. */
export interface Stood {
  /** How long it did not turn. */
  stood_ms: number
  /** Of this, how long its thread was on a processor, and how long it was ready to run and got none. */
  cpu_ms: number
  waited_ms: number
}

/** A line that the watch within the service writes. */
export type LoopLine =
  | ({ kind: 'stood' } & Stood)
  | {
      kind: 'turns'
      /** ms since 1970, and what the thread had of a processor by then. */
      at: number
      on_cpu_ms: number
    }
  | {
      kind: 'kept'
      /** The heap and what it holds outside of itself, after a full collection. */
      megabytes: number
    }

/** Reads what the watch has written since the last look. */
export class LoopLines {
  readonly file: string
  private offset = 0
  private unread = ''

  constructor(file: string) {
    this.file = file
  }

  take(): LoopLine[] {
    if (!existsSync(this.file)) return []
    const descriptor = openSync(this.file, 'r')
    try {
      const bytes = Buffer.alloc(fstatSync(descriptor).size - this.offset)
      this.offset += readSync(descriptor, bytes, 0, bytes.length, this.offset)
      const lines = (this.unread + bytes.toString('latin1')).split('\n')
      this.unread = lines.pop()!
      return lines.map((line) => JSON.parse(line) as LoopLine)
    } finally {
      closeSync(descriptor)
    }
  }
}
