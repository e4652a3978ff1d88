import { StartError } from '@annals/kits/errors.js'

/** A valid line of its kind. `text` is the line itself. */
export interface ExportLine {
  number: number
  text: string
  kind: string
  record: Record<string, unknown>
  /** Bytes of the file up to the line's end. */
  end_offset: number
  /** What the follower of the kind made of it. */
  followed?: unknown
}

/** Lines of an export, and how many of them are what. */
export interface ExportPiece {
  lines: string[]
  counts: Record<string, number>
}

/** Follows the lines of a file, to find what is wrong with their order, or between them. */
export interface LineFollower {
  /** @returns what belongs to the line @throws StartError when the line cannot stand where it stands */
  follow(line: Omit<ExportLine, 'end_offset'>): unknown
  /** No line comes after the one before `number`. @throws StartError when something is missing */
  finish(number: number): void
}

const REASON_LENGTH_MAX = 1_000

/** An error in a line of a file, in words that follow "Line 7: ". It may quote the line, which may have megabytes. */
export function wrongLine(number: number, reason: string): StartError {
  const shown =
    reason.length > REASON_LENGTH_MAX ? `${reason.slice(0, REASON_LENGTH_MAX).toWellFormed()}…` : reason
  return new StartError(`Line ${number}: ${shown}`)
}
