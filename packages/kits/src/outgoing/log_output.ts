import { writeSync } from 'node:fs'

/** Characters that are written as soon as they are there, and ms after which fewer are written. */
const WRITTEN_AT = 16_384
const WRITTEN_AFTER_MS = 50
/** Characters that wait for a slow reader; further lines are lost. */
const WAITING_MAX = 1_048_576
/** How long the process waits for such a reader at exit, and how often it tries. */
const END_MS_MAX = 500
const END_TRY_MS = 10
const NEWLINE = 10

export interface LogEvents {
  /** Called with the number of lines lost. */
  onLost(lines: number): void
  /** Called when lines can be written again, with the number lost. */
  onResumed(lines: number): void
}

/** Like write(2): writes some of the bytes and returns their number. @throws EAGAIN if it would have to wait */
type Write = (bytes: Uint8Array) => number

/**
 * Writes the log to stderr: several lines at a time, because each write is a system call, and synchronously, because
 * a busy event loop would write less than it is given. The service goes on whatever happens there: lines wait for a
 * slow reader, up to a limit, and are lost if they cannot be written, as on a full disk. Every later write is tried,
 * so the log resumes as soon as possible, after ending a line that was cut off.
 */
export class LogOutput {
  /** Lines that no write has been given yet. */
  private text = ''
  /** The rest of lines that were partly written. */
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

  /** Writes as much as possible without waiting. */
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

  /** Writes everything that is left, giving a slow reader a moment. */
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

/** The number of line ends. A leading newline ends a line whose text was already written. */
function countLines(bytes: Uint8Array): number {
  let lines = 0
  for (let at = bytes.indexOf(NEWLINE, 1); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) lines += 1
  return lines
}

/**
 * Node makes a pipe or socket non-blocking when the stream is accessed; otherwise a write would wait for the reader.
 */
function standardError(): Write {
  const { fd } = process.stderr
  return (bytes) => writeSync(fd, bytes)
}
