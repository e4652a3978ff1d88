import { Unzip, type UnzipFile, UnzipInflate } from 'fflate'
import { small } from './gunzip.js'
import { Damaged } from './pieces.js'

/** Only files with these endings are read: an export also has pictures. */
const READ =
  /\.(?:jsonl?|ndjson|traj)$|(?:^|\/)(?:\.aider\.chat\.history|cursor_[^/]+|[a-z_]{2,40}_task_[^/]+|\d{4}-\d\d-\d\d_\d\d-\d\d(?:-\d\d)?Z[^/]*)\.md$/i

const OWN_TO_MACOS = /^__MACOSX\//
/** Stored and deflated, which is what nearly all archives have. */
const KNOWN_COMPRESSIONS = new Set([0, 8])

interface Inner {
  name: string
  bytes: AsyncGenerator<Uint8Array>
  /** Why it cannot be read. */
  reason?: string
}

/**
 * The files of an archive that may be transcripts, one after the other. Each is read to its end before the next.
 * `onSkipped` is called for each other file, such as a picture.
 */
export async function* unzip(
  packed: AsyncIterable<Uint8Array>,
  onSkipped: () => void,
): AsyncGenerator<Inner> {
  const files: UnzipFile[] = []
  const unzipper = new Unzip((file) => {
    if (READ.test(file.name) && !OWN_TO_MACOS.test(file.name)) return void files.push(file)
    if (!file.name.endsWith('/') && !OWN_TO_MACOS.test(file.name)) onSkipped()
    if (KNOWN_COMPRESSIONS.has(file.compression)) {
      // fflate keeps the bytes of a file that nobody starts.
      file.ondata = () => {}
      file.start()
    }
  })
  unzipper.register(UnzipInflate)
  const iterator = chunksOf(packed)
  let is_read = false
  let is_told = false
  let damage: Damaged | undefined
  const more = async () => {
    const next = await iterator.next()
    is_read = next.done === true
    try {
      unzipper.push(next.value ?? new Uint8Array(0), is_read)
    } catch (error) {
      damage = new Damaged(`the archive was cut off, or is damaged (${(error as Error).message})`)
      is_read = true
    }
  }
  for (;;) {
    while (files.length === 0 && !is_read) await more()
    const file = files.shift()
    if (!file) {
      if (damage && !is_told) yield { name: '', bytes: nothing(), reason: damage.message }
      return
    }
    if (!KNOWN_COMPRESSIONS.has(file.compression)) {
      const reason = `it is packed by method ${file.compression}: unpack the archive, and import its folder`
      yield { name: file.name, bytes: nothing(), reason }
      continue
    }
    const inner = contentOf(file, more, () => is_read)
    yield { name: file.name, bytes: inner }
    // What was not read has to be passed by.
    try {
      for await (const _ of inner);
    } catch (error) {
      if (!(error instanceof Damaged)) throw error
    }
    // Who read the file was told of the damage.
    is_told = damage !== undefined
  }
}

async function* contentOf(
  file: UnzipFile,
  more: () => Promise<void>,
  isRead: () => boolean,
): AsyncGenerator<Uint8Array> {
  const chunks: Uint8Array[] = []
  let is_over = false
  let failed: Error | undefined
  file.ondata = (error, chunk, final) => {
    if (error) failed = error
    else chunks.push(chunk)
    is_over ||= final
  }
  file.start()
  for (;;) {
    yield* chunks.splice(0)
    if (failed) throw new Damaged(`the archive is damaged (${failed.message})`)
    if (is_over) return
    if (isRead()) throw new Damaged('the archive was cut off within it')
    await more()
  }
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

async function* chunksOf(packed: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of packed) yield* small(chunk)
}
