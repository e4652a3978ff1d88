import type { FileFacts, Format, Parser } from './format.js'
import { FORMATS, findFormat } from './formats.js'
import { Output } from './output.js'
import { Pictures } from './pictures.js'
import { archiveContents, type Beside, type Slice } from './reading/beside.js'
import { DocumentReader } from './reading/documents.js'
import { HEAD_BYTES, HEAD_BYTES_MAX, hasLines, headOf } from './reading/head.js'
import { LineReader, SPACE } from './reading/lines.js'
import { packingOf } from './reading/packing.js'
import { Damaged, joined, type Piece, type PieceReader } from './reading/pieces.js'
import { unzip } from './reading/unzip.js'
import type { ImportRecord } from './records.js'

const LINE_BYTES_MAX = 32 * 1024 * 1024
const ITEM_BYTES_MAX = 64 * 1024 * 1024

/** A file: its path, which may tell what its lines do not, and its bytes. */
export interface ImportFile {
  name: string
  bytes: AsyncIterable<Uint8Array>
  /** Where it can be read in any order: its size, and bytes of it. The pictures of an archive are read so. */
  parts?: { size: number; slice: Slice }
  /** The files of its folder, and what that is called, or the end of its path. */
  beside?: Beside | undefined
  folder?: string
}

export interface ReadOptions {
  /** The name of the format; found by the content if not given. */
  format?: string | undefined
  /** Leave out sessions that last changed before; a time in RFC 3339, in UTC. */
  since?: string | undefined
  /** It is still being written: what its end cuts off is left for the next time, and is no fault. */
  is_growing?: boolean
  line_bytes_max?: number
  item_bytes_max?: number
}

/** The content of a file has no format that is known. */
export class UnknownFormat extends Error {
  override readonly name = 'UnknownFormat'
}

/**
 * Reads a file of any known format, packed or not, in memory that does not grow with it.
 * @throws UnknownFormat before anything else came
 */
export function readImport(file: ImportFile, options: ReadOptions = {}): AsyncGenerator<ImportRecord, void> {
  return readFile(file, options, new Map())
}

async function* readFile(
  file: ImportFile,
  options: ReadOptions,
  shared: FileFacts['shared'],
): AsyncGenerator<ImportRecord, void> {
  const { head, is_whole, rest } = await begin(file.bytes)
  const packing = packingOf(head)
  if (packing === undefined) yield* readPlain(file, head, is_whole, rest, options, shared)
  else if (packing === 'zip') yield* readArchive(file, rest, options)
  else if ('foreign' in packing) throw new UnknownFormat(`${file.name} is ${packing.foreign}.`)
  else {
    const name = file.name.replace(/\.gz$/i, '')
    yield* readFile({ ...file, name, bytes: packing.bytes(rest) }, options, shared)
  }
}

async function* readArchive(
  { name, parts }: ImportFile,
  bytes: AsyncIterable<Uint8Array>,
  options: ReadOptions,
): AsyncGenerator<ImportRecord, void> {
  let found = false
  let pictures = 0
  const beside = parts && archiveContents(parts.size, parts.slice)
  const shared = new Map<string, unknown>()
  const whole = FORMATS.find(({ archive }) => archive?.ending.test(name))
  const inside = whole ? { ...options, format: options.format ?? whole.name } : options
  let skipped = 0
  for await (const file of unzip(bytes, () => skipped++)) {
    if (whole?.archive?.repeats.test(file.name)) continue
    const inner = file.name === '' ? name : `${name}/${file.name}`
    if (file.reason !== undefined) {
      yield { kind: 'refused', place: { file: inner, line: 1 }, reason: file.reason }
      continue
    }
    try {
      for await (const record of readFile({ name: inner, bytes: file.bytes, beside }, inside, shared)) {
        found = true
        if (record.kind === 'pictures') pictures += record.read
        yield record
      }
    } catch (error) {
      if (!(error instanceof UnknownFormat)) throw error
      const reason = 'it is of no known format, and is left out'
      yield { kind: 'warning', place: { file: inner, line: 1 }, reason }
    }
  }
  if (found && skipped > pictures) {
    const reason = `files in it that are no transcripts, such as pictures, are left out: ${skipped - pictures}`
    yield { kind: 'warning', place: { file: name, line: 1 }, reason }
  }
  if (!found) throw new UnknownFormat(`${name} is an archive without a file of a known format.`)
}

async function* readPlain(
  { name, beside, folder }: ImportFile,
  bytes: Uint8Array,
  is_whole: boolean,
  rest: AsyncIterable<Uint8Array>,
  options: ReadOptions,
  shared: FileFacts['shared'],
): AsyncGenerator<ImportRecord, void> {
  if (is_whole && bytes.every((byte) => byte <= SPACE)) throw new UnknownFormat(`${name} is empty.`)
  const head = headOf(bytes, is_whole)
  const format = formatOf(name, head, options.format)
  const output = new Output(format.name, name, options.since)
  const names = format.asks_beside && beside ? await beside.names() : []
  const folders = (folder ?? name.split('/').slice(0, -1).join('/')).split('/').filter((one) => one !== '')
  const facts = { name, head, shared, folders, beside: names }
  const parser = format.open(output, facts)
  const reader = readerOf(format, head.is_lines, options)
  yield { kind: 'format', file: name, format: format.name }
  const records = readRecords(parser, output, reader, rest, unfinishedOf(format, options))
  yield* format.has_pictures ? withPictures(records, name, beside) : records
}

/** Fills pictures in, and tells how many there are. */
async function* withPictures(
  records: AsyncIterable<ImportRecord>,
  file: string,
  beside: Beside | undefined,
): AsyncGenerator<ImportRecord, void> {
  const pictures = new Pictures(beside)
  for await (const record of records) yield pictures.fill(record)
  const { read, missing } = pictures
  yield { kind: 'pictures', read }
  if (missing === 0) return
  const reason = `pictures that are not beside it leave a note of their names: ${missing}`
  yield { kind: 'warning', place: { file, line: 1 }, reason }
}

/** A text may go on within its last line. What is whole JSON without its line feed does not. */
function unfinishedOf({ shape }: Format, { is_growing }: ReadOptions): Unfinished {
  if (!is_growing) return 'counts'
  return shape === 'text' ? 'waits' : 'waits where it is cut off'
}

/** What becomes of the last piece of a file if nothing ends it, such as a line without a line feed. */
type Unfinished = 'counts' | 'waits' | 'waits where it is cut off'

async function* readRecords(
  parser: Parser,
  output: Output,
  reader: PieceReader,
  rest: AsyncIterable<Uint8Array>,
  unfinished: Unfinished,
): AsyncGenerator<ImportRecord, void> {
  let last: Piece = { line: 1, end_offset: 0, value: undefined }
  let damage: Damaged | undefined
  try {
    for await (const chunk of rest) {
      const before = last
      for (const piece of reader.push(chunk)) {
        last = piece
        yield* readPiece(parser, output, piece)
      }
      if (last !== before) yield progressOf(last, output)
    }
  } catch (error) {
    if (!(error instanceof Damaged)) throw error
    damage = error
  }
  let is_cut = damage !== undefined
  if (damage) yield* readPiece(parser, output, { ...last, value: undefined, reason: damage.message })
  else if (unfinished !== 'waits')
    for (const piece of reader.end()) {
      if (unfinished !== 'counts' && piece.reason !== undefined) continue
      last = piece
      is_cut ||= piece.reason !== undefined
      yield* readPiece(parser, output, piece)
    }
  parser.end?.()
  // Nobody knows what else there was of the sessions that a cut file had begun.
  if (!is_cut) output.endAll()
  yield* output.take()
  yield progressOf(last, output)
}

function* readPiece(parser: Parser, output: Output, piece: Piece): Generator<ImportRecord> {
  output.begin(piece.line)
  if (piece.reason === undefined) parser.read(piece.value, piece)
  else output.refuse(piece.reason)
  output.finish(piece.value)
  yield* output.take()
}

function progressOf({ end_offset }: Piece, { format, tally }: Output): ImportRecord {
  return { kind: 'progress', bytes: end_offset, format, tally }
}

function formatOf(name: string, head: FileFacts['head'], asked: string | undefined): Format {
  if (asked !== undefined) {
    const format = FORMATS.find((one) => one.name === asked)
    if (!format) throw new UnknownFormat(`There is no format ${JSON.stringify(asked)}.`)
    return format
  }
  const format = findFormat(head)
  if (format) return format
  const known = FORMATS.map((one) => one.name).join(', ')
  throw new UnknownFormat(
    `Annals does not recognize the format of ${name}, ${beginningOf(head)}. If it is one of these, name it with --format on the command line: ${known}.`,
  )
}

const MEMBERS_SHOWN_MAX = 8

/** What a file was found to have, for those who wonder why no format fits. */
function beginningOf({ samples: [first] }: FileFacts['head']): string {
  const names = Object.keys(first ?? {})
  if (names.length === 0) return 'whose beginning has no JSON object'
  const shown = names.slice(0, MEMBERS_SHOWN_MAX).map((name) => name.slice(0, 40))
  return `whose first object has ${shown.join(', ')}${names.length > shown.length ? ', …' : ''}`
}

function readerOf(
  format: Format,
  is_lines: boolean | undefined,
  { line_bytes_max = LINE_BYTES_MAX, item_bytes_max = ITEM_BYTES_MAX }: ReadOptions,
): PieceReader {
  if (format.shape === 'text') return new LineReader(line_bytes_max, true)
  const are_lines = is_lines ?? format.shape === 'lines'
  // One line may be one document, of which some members are long.
  return are_lines && !format.streamed
    ? new LineReader(line_bytes_max)
    : new DocumentReader(new Set(format.streamed), item_bytes_max)
}

/** Reads the beginning of some bytes; `rest` is all of them. */
async function begin(
  bytes: AsyncIterable<Uint8Array>,
): Promise<{ head: Uint8Array; is_whole: boolean; rest: AsyncGenerator<Uint8Array> }> {
  const iterator = bytes[Symbol.asyncIterator]()
  const parts: Uint8Array[] = []
  let length = 0
  let is_whole = false
  let damage: Damaged | undefined
  let enough = HEAD_BYTES_MAX
  const more = async () => {
    try {
      return await iterator.next()
    } catch (error) {
      if (!(error instanceof Damaged)) throw error
      damage = error
      return { done: true as const, value: undefined }
    }
  }
  while (length < enough && !is_whole) {
    const next = await more()
    if (next.done) is_whole = true
    else {
      if (hasLines(next.value)) enough = HEAD_BYTES
      parts.push(next.value)
      length += next.value.length
    }
  }
  async function* all() {
    try {
      yield* parts
      for (
        let next = is_whole ? undefined : await iterator.next();
        next && !next.done;
        next = await iterator.next()
      )
        yield next.value
      if (damage) throw damage
    } finally {
      await iterator.return?.()
    }
  }
  return {
    head: joined(parts).subarray(0, enough),
    is_whole: is_whole && length <= enough,
    rest: all(),
  }
}
