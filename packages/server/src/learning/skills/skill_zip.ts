import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { setImmediate as breathe } from 'node:timers/promises'
import { crc32 } from 'node:zlib'
import { type AnnalsError, invalidRequest } from '@annals/kits/errors.js'
import { shownPath, skillRoot, wrongSkillPaths } from '@annals/learning'
import mime from 'mime/lite'
import yauzl, { type Entry, type ZipFile } from 'yauzl'
import yazl from 'yazl'

const SKILL_BYTES_MAX = 8 * 1024 * 1024
const SKILL_FILES_MAX = 200
/** Entries of a zip, folders and the like included. */
const ENTRIES_MAX = 1_000
/** Bytes of the extra fields and comments of all entries: the library makes objects of them, fifty times as large. */
const EXTRA_BYTES_MAX = 128 * 1024
/** A zip's directory: bytes before an entry's name, and where in them the lengths of what follows are. */
const ENTRY = { bytes: 46, name_length_at: 28, extra_length_at: 30, comment_length_at: 32 }
/** Times as large as the zip that its files may be. */
const RATIO_MAX = 100
/** Bytes that small zips may unpack to in any case. */
const SMALL_BYTES = 1024 * 1024
const TYPE_OF_FILE = 0o170000
const REGULAR = 0o100000
const STORED = 0
const DEFLATED = 8
/** Files that the Finder of macOS adds to a zip. */
const OF_FINDER = /^__MACOSX\/|(^|\/)\.DS_Store$/

export interface SkillFile {
  path: string
  mime: string
  /** It is UTF-8. */
  is_text: boolean
  sha256: string
  bytes: Buffer
}

/**
 * The files of a skill in a zip: at its top level, or in the only folder there. All sizes are checked before anything is
 * unpacked, and again while it is. `hold` reserves memory for so many bytes. @throws AnnalsError invalid_request
 */
export async function readSkillZip(
  zip: Buffer,
  hold: (bytes: number) => Promise<void>,
): Promise<SkillFile[]> {
  const archive = await orRefuse(yauzl.fromBufferPromise(zip, { strictFileNames: true }))
  if (archive.entryCount > ENTRIES_MAX) throw wrongZip(`it has more than ${ENTRIES_MAX} entries`)
  if (extraBytes(zip, archive) > EXTRA_BYTES_MAX)
    throw wrongZip(`it has more than ${EXTRA_BYTES_MAX} bytes of extra fields and comments`)
  const entries = await findFiles(archive, zip.length)
  const names = entries.map(({ fileName }) => fileName)
  const root = skillRoot(names)
  const paths = names.map((name) => name.slice(root.length))
  const wrong = wrongSkillPaths(paths)
  if (wrong) throw wrongZip(wrong)
  await hold(entries.reduce((sum, { uncompressedSize }) => sum + uncompressedSize, 0))
  const files: SkillFile[] = []
  for (const [index, entry] of entries.entries())
    files.push(await orRefuse(unpack(archive, entry, paths[index]!)))
  return files
}

function extraBytes(zip: Buffer, { readEntryCursor, entryCount }: ZipFile): number {
  let bytes = 0
  let at = readEntryCursor as unknown as number
  for (let left = entryCount; left > 0 && at + ENTRY.bytes <= zip.length; left -= 1) {
    const extra =
      zip.readUInt16LE(at + ENTRY.extra_length_at) + zip.readUInt16LE(at + ENTRY.comment_length_at)
    bytes += extra
    at += ENTRY.bytes + zip.readUInt16LE(at + ENTRY.name_length_at) + extra
  }
  return bytes
}

/** The entries that are files, of sizes that may be unpacked. */
async function findFiles(archive: ZipFile, zip_bytes: number): Promise<Entry[]> {
  const entries: Entry[] = []
  const isFile = ({ fileName }: Entry) => !fileName.endsWith('/') && !OF_FINDER.test(fileName)
  const next = archive.eachEntry()
  for (;;) {
    const { done, value: entry } = await orRefuse(next.next())
    if (done) break
    if (!isFile(entry)) continue
    const place = shownPath(entry.fileName)
    const type = (entry.externalFileAttributes >>> 16) & TYPE_OF_FILE
    if (type !== 0 && type !== REGULAR) throw wrongZip(`${place} is a link or a device`)
    if (entry.isEncrypted()) throw wrongZip(`${place} is encrypted`)
    if (entry.compressionMethod !== STORED && entry.compressionMethod !== DEFLATED)
      throw wrongZip(`${place} is compressed in a way other than Deflate`)
    entries.push(entry)
  }
  if (entries.length > SKILL_FILES_MAX) throw wrongZip(`it has more than ${SKILL_FILES_MAX} files`)
  const bytes = entries.reduce((sum, { uncompressedSize }) => sum + uncompressedSize, 0)
  if (bytes > SKILL_BYTES_MAX) throw wrongZip(`its files have more than ${SKILL_BYTES_MAX} bytes`)
  if (bytes > Math.max(SMALL_BYTES, RATIO_MAX * zip_bytes))
    throw wrongZip(`its files are more than ${RATIO_MAX} times as large as the zip`)
  return entries
}

async function unpack(archive: ZipFile, entry: Entry, path: string): Promise<SkillFile> {
  const hash = createHash('sha256')
  const chunks: Buffer[] = []
  let checksum = 0
  for await (const chunk of (await archive.openReadStreamPromise(entry)) as AsyncIterable<Buffer>) {
    hash.update(chunk)
    checksum = crc32(chunk, checksum)
    chunks.push(chunk)
    // Small files unpack faster than they are worked on.
    await breathe()
  }
  const bytes = Buffer.concat(chunks)
  // The library does not look.
  if (checksum !== entry.crc32) throw new Error(`${shownPath(path)} is damaged: its checksum is another`)
  const is_text = isUtf8(bytes) && !bytes.includes(0)
  return { path, mime: mimeOf(path, is_text), is_text, sha256: hash.digest('hex'), bytes }
}

/** By the extension. A text is never taken for a film because programs share an extension with it. */
function mimeOf(path: string, is_text: boolean): string {
  const type = mime.getType(path) ?? ''
  if (!is_text) return type || 'application/octet-stream'
  return /^(text|application)\/|^image\/svg/.test(type) ? type : 'text/plain'
}

export interface ZippedFile {
  path: string
  bytes: number
  read(): AsyncIterable<Buffer> | Iterable<Buffer>
}

/** A zip of files, as it is made; of the same files it is always the same. */
export async function* writeZip(files: readonly ZippedFile[], made_at: Date): AsyncGenerator<Buffer> {
  // The library ends the process at a time before 1970.
  const mtime = new Date(Math.max(made_at.getTime(), 0))
  const zip = new yazl.ZipFile()
  const output = zip.outputStream as Readable
  zip.on('error', (error) => output.destroy(error as Error))
  for (const { path, bytes, read } of files)
    zip.addReadStreamLazy(path, { mtime, mode: 0o100644, size: bytes }, (done) =>
      // The library does not listen for its errors, and one that nobody hears ends the process.
      done(
        null,
        Readable.from(read()).on('error', (error) => output.destroy(error)),
      ),
    )
  zip.end()
  yield* output as AsyncIterable<Buffer>
}

/** Turns the library's error for an unreadable zip into a refusal. */
async function orRefuse<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work
  } catch (error) {
    throw wrongZip((error as Error).message.slice(0, 300).replace(/\.$/, ''))
  }
}

export function wrongZip(why: string): AnnalsError {
  return invalidRequest(`/file is not a zip of a skill: ${why.toWellFormed()}.`)
}
