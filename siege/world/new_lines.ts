import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs'

/** Lines that are added to a file, whole ones, each once. */
export class NewLines {
  readonly file: string
  private offset = 0
  private unread = ''

  constructor(file: string) {
    this.file = file
  }

  /** What was added since the last look. */
  take(): string[] {
    if (!existsSync(this.file)) return []
    const descriptor = openSync(this.file, 'r')
    try {
      const bytes = Buffer.alloc(fstatSync(descriptor).size - this.offset)
      this.offset += readSync(descriptor, bytes, 0, bytes.length, this.offset)
      const lines = (this.unread + bytes.toString('latin1')).split('\n')
      this.unread = lines.pop()!
      return lines
    } finally {
      closeSync(descriptor)
    }
  }
}

/** Of lines of a log, what was logged as an error, by its message, and how often. */
export function loggedErrors(lines: string[]): Record<string, number> {
  const errors: Record<string, number> = {}
  for (const line of lines) {
    const { level = 0, msg = '', err } = parsed(line)
    if (level < 50) continue
    const message = err?.message === undefined ? msg : `${msg}: ${err.message}`
    errors[message] = (errors[message] ?? 0) + 1
  }
  return errors
}

function parsed(line: string): { level?: number; msg?: string; err?: { message?: string } } {
  try {
    return line.startsWith('{') ? JSON.parse(line) : {}
  } catch {
    return {}
  }
}
