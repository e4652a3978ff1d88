import { writeSync } from 'node:fs'

/** Characters that are written as soon as they are there, and ms after which fewer are. */
const WRITTEN_AT = 16_384
const WRITTEN_AFTER_MS = 50
/** Characters that wait for a reader that is behind; lines beyond that are lost. */
const WAITING_MAX = 1_048_576
/** How long the end of the process waits for such a reader, and how often it tries. */
const END_MS_MAX = 500
const END_TRY_MS = 10
const NEWLINE = 10

export interface LogEvents {
  /** So many lines are lost. */
  onLost(lines: number): void
  /** Lines are written again, after so many were lost. */
  onResumed(lines: number): void
}

/** As write(2): writes some of the bytes and gives their number. @throws EAGAIN where it would have to wait */
type Write = (bytes: Uint8Array) => number

/**
 * Writes the log to standard error, several lines together since each write is a system call, and synchronously since
 * a busy event loop would write less than it is given. Whatever happens there, the service goes on: lines wait for a
 * reader that is behind, up to a bound, and are lost where they cannot be written, as on a full disk. Each next write is
 * tried, so that the log goes on as soon as it can, behind the end of a line that was cut.
 */
export class LogOutput {
  /** Lines that were not yet given to a write. */
  private text = ''
  /** What writes have left of the lines before. */
  private rest: Uint8Array = new Uint8Array()
  private isInLine = false
  private lost = 0
  private timer: NodeJS.Timeout | undefined

  constructor(
    private readonly events: LogEvents,
    private readonly output: Write = standardError(),
  ) {}

  write(line: string): void {
    if (this.text.length > WAITING_MAX) this.lose(1)
    else this.text += line
    if (this.text.length >= WRITTEN_AT && this.rest.length === 0) this.flush()
    else this.timer ??= setTimeout(() => this.flush(), WRITTEN_AFTER_MS).unref()
  }

  /** Writes what can be written without waiting. */
  flush(): void {
    clearTimeout(this.timer)
    this.timer = undefined
    this.writeRest()
    if (this.rest.length === 0 && this.text !== '') {
      this.rest = Buffer.from(this.isInLine ? `\n${this.text}` : this.text)
      this.text = ''
      this.writeRest()
    }
    if (this.rest.length > 0) this.timer = setTimeout(() => this.flush(), WRITTEN_AFTER_MS).unref()
  }

  /** Writes all that is left, for which a reader that is behind has a moment. */
  end(): void {
    const clock = new Int32Array(new SharedArrayBuffer(4))
    const until = performance.now() + END_MS_MAX
    for (this.flush(); this.rest.length > 0 && performance.now() < until; this.flush())
      Atomics.wait(clock, 0, 0, END_TRY_MS)
    clearTimeout(this.timer)
  }

  private writeRest(): void {
    if (this.rest.length === 0) return
    try {
      while (this.rest.length > 0) {
        const written = this.output(this.rest)
        if (written > 0) this.isInLine = this.rest[written - 1] !== NEWLINE
        this.rest = this.rest.subarray(written)
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return
      const lines = countLines(this.rest)
      this.rest = new Uint8Array()
      this.lose(lines)
      return
    }
    if (this.lost === 0) return
    const { lost } = this
    this.lost = 0
    this.events.onResumed(lost)
  }

  private lose(lines: number): void {
    this.lost += lines
    this.events.onLost(lines)
  }
}

/** Lines that end here. A newline in front ends one whose text was written. */
function countLines(bytes: Uint8Array): number {
  let lines = 0
  for (let at = bytes.indexOf(NEWLINE, 1); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) lines += 1
  return lines
}

/** Node makes a pipe or a socket non-blocking when it is asked for the stream, without which a write waits for the reader. */
function standardError(): Write {
  const { fd } = process.stderr
  return (bytes) => writeSync(fd, bytes)
}
