import { createHash } from 'node:crypto'
import type { StartError } from '../../errors.js'
import {
  type CheckedLine,
  type EndRecord,
  type EntryRecord,
  type ExportHeader,
  readExportLine,
  readHeader,
  type SessionRecord,
  wrongLine,
} from './export_format.js'
import { LineSplitter } from './line_splitter.js'

/** A checked line of an export, its session, and where it ends in the file. */
export type ExportLine = Exclude<CheckedLine, { kind: 'end' }> & {
  /** The session of an entry, and of a session's own line. */
  session: SessionRecord | undefined
  /** Bytes of the file up to the line's end. */
  end_offset: number
}

/** The totals of a completely read export. */
export interface ExportTotals {
  lines: number
  bytes: number
}

/**
 * Reads an export and checks everything that needs no database: the form of each line, that each session's log is
 * complete and agrees with its head, the number of lines and the checksum.
 *
 *   header ──▶ lines: users, learning spaces, sessions each followed by their entries ──▶ end ──▶ nothing more
 *
 * Lines are returned as they are read, so each returned line is valid, but the export as a whole only once its end
 * was reached without an error.
 * @throws StartError that names the line and what is wrong with it
 */
export class ExportReader {
  header: ExportHeader | undefined
  private readonly hash = createHash('sha256')
  private readonly log = new LogCheck()
  private lines = 0
  private bytes = 0
  private ended = false

  constructor(private readonly source: AsyncIterable<Buffer>) {}

  async *read(): AsyncGenerator<ExportLine[], ExportTotals> {
    const splitter = new LineSplitter()
    for await (const chunk of this.source) {
      const lines: ExportLine[] = []
      for (const bytes of splitter.push(chunk)) this.take(bytes, 1, lines)
      if (lines.length > 0) yield lines
    }
    const rest = splitter.rest()
    if (rest.length > 0) this.take(rest, 0, [])
    if (!this.ended) throw this.cutOff()
    return { lines: this.lines, bytes: this.bytes }
  }

  private take(source: Buffer, lineFeedBytes: number, into: ExportLine[]): void {
    const number = this.lines + 1
    if (this.ended) throw wrongLine(number + 1, 'there is more after the last line of the export.')
    // Only the last line may lack its line feed; any other was cut off in the middle, whatever it looks like.
    if (lineFeedBytes === 0 && !source.includes('"kind":"end"')) throw this.cutOff()
    this.bytes += source.length + lineFeedBytes
    if (!this.header) {
      this.header = readHeader(source)
    } else {
      const line = readExportLine(source, number)
      if (line.kind === 'end') {
        this.end(line.number, line.record)
        return
      }
      into.push({ ...line, session: this.log.follow(line), end_offset: this.bytes })
    }
    this.hash.update(source).update('\n')
    this.lines = number
  }

  private end(number: number, { lines, sha256 }: EndRecord): void {
    this.log.finish(number)
    if (lines !== this.lines) {
      throw wrongLine(number, `the export had ${lines} lines before this one, the file has ${this.lines}.`)
    }
    if (sha256 !== this.hash.digest('hex')) {
      throw wrongLine(number, 'the checksum does not match: the file was changed or damaged.')
    }
    this.ended = true
  }

  private cutOff(): StartError {
    return wrongLine(this.lines + 1, 'the file ends before its last line with the checksum: it was cut off.')
  }
}

/** Follows the entries of one session after the other, and compares them with the session's line. */
class LogCheck {
  private session: SessionRecord | undefined
  private last: { seq: number; tokens: number; created_at: string; message_id: string | null } = NOTHING_YET

  /** The session that the line belongs to. @throws StartError if the line is out of place */
  follow(line: Exclude<CheckedLine, { kind: 'end' }>): SessionRecord | undefined {
    switch (line.kind) {
      case 'event':
      case 'message':
        return this.enter(line.number, line.kind, line.record)
      case 'session':
        this.finish(line.number)
        this.session = line.record
        this.last = NOTHING_YET
        return this.session
      default:
        this.finish(line.number)
        return undefined
    }
  }

  /** Ends the last followed session. @throws StartError if its log is incomplete */
  finish(number: number): void {
    const { session, last } = this
    this.session = undefined
    if (!session) return
    const what = `before this line, session ${session.id} should`
    if (session.last_seq !== last.seq) {
      throw wrongLine(number, `${what} have ${session.last_seq} entries and has ${last.seq}.`)
    }
    if (session.total_tokens !== last.tokens) {
      throw wrongLine(number, `${what} have ${session.total_tokens} tokens and has ${last.tokens}.`)
    }
    if (session.last_message_id !== last.message_id) {
      throw wrongLine(
        number,
        `${what} end with message ${session.last_message_id} and ends with ${last.message_id}.`,
      )
    }
  }

  private enter(number: number, kind: 'event' | 'message', entry: EntryRecord): SessionRecord {
    const { session, last } = this
    if (!session || session.id !== entry.session_id) {
      throw wrongLine(
        number,
        `session_id must be that of the session's line before it${session ? `, ${session.id}` : ''}.`,
      )
    }
    if (entry.seq !== last.seq + 1)
      throw wrongLine(number, `seq must be ${last.seq + 1}; it is ${entry.seq}.`)
    if (entry.created_at < last.created_at) {
      throw wrongLine(number, 'created_at must not be earlier than that of the entry before it.')
    }
    this.last = {
      seq: entry.seq,
      tokens: last.tokens + entry.tokens,
      created_at: entry.created_at,
      message_id: kind === 'message' ? entry.id : last.message_id,
    }
    return session
  }
}

const NOTHING_YET = { seq: 0, tokens: 0, created_at: '', message_id: null }
