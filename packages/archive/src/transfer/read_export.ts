import { createHash } from 'node:crypto'
import type { StartError } from '@annals/kits/errors.js'
import type { Table } from '@annals/kits/lifecycle/table.js'
import { ownOf } from '../tables.js'
import {
  type EndRecord,
  type ExportHeader,
  type LineKind,
  lineKinds,
  readExportLine,
  readHeader,
} from './export_format.js'
import { type ExportLine, type LineFollower, wrongLine } from './export_line.js'
import { LineSplitter } from './line_splitter.js'

/**
 * Reads an export and checks all that can be checked without a database: the form of each line, what the followers of
 * the tables look for (that each session's log is whole), the count of lines and the checksum.
 *
 *   header ──▶ lines, each after what it refers to ──▶ end ──▶ nothing more
 *
 * Lines are returned as they are read, so each returned line is valid, but the export as a whole only once its end
 * was reached without an error.
 * @throws StartError that names the line and what is wrong with it
 */
export class ExportReader {
  header: ExportHeader | undefined
  private readonly hash = createHash('sha256')
  private readonly kinds: ReadonlyMap<string, LineKind>
  private readonly followers: LineFollower[]
  private lines = 0
  private bytes = 0
  private ended = false

  constructor(
    private readonly source: AsyncIterable<Buffer>,
    tables: readonly Table[],
  ) {
    this.kinds = lineKinds(tables)
    this.followers = tables.flatMap((table) => ownOf(table).follow?.() ?? [])
  }

  async *read(): AsyncGenerator<ExportLine[]> {
    const splitter = new LineSplitter()
    for await (const chunk of this.source) {
      const lines: ExportLine[] = []
      for (const bytes of splitter.push(chunk)) this.take(bytes, 1, lines)
      if (lines.length > 0) yield lines
    }
    const rest = splitter.rest()
    if (rest.length > 0) this.take(rest, 0, [])
    if (!this.ended) throw this.cutOff()
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
      const line = readExportLine(this.kinds, source, number)
      if (line.kind === 'end') {
        this.end(line.number, line.record as unknown as EndRecord)
        return
      }
      // All of them see each line: one that is not theirs may end what they follow.
      const followed = this.followers
        .map((follower) => follower.follow(line))
        .find((one) => one !== undefined)
      into.push({ ...line, followed, end_offset: this.bytes })
    }
    this.hash.update(source).update('\n')
    this.lines = number
  }

  private end(number: number, { lines, sha256 }: EndRecord): void {
    for (const follower of this.followers) follower.finish(number)
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
