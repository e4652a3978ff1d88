import type { Queryable } from '@annals/kits/postgres/database.js'
import { plainArray } from '@annals/kits/postgres/statement.js'
import { LRUCache } from 'lru-cache'
import { READ_RUN_WORDS } from './recall_queries.js'

/** Memory for all projects, and how long cached words stay valid: snippets are always read from the log. */
const BYTES_MAX = 16 * 1024 * 1024
const KNOWN_MS = 60_000
const ENTRY_BYTES = 256

const NONE = new SharedArrayBuffer(0)

/**
 * The words of runs, as recent questions read them: most questions look at the newest ones, which take long to unpack. The
 * thread that scores them reads them from shared memory, because they would be half a megabyte to copy for each question.
 */
export class RunWords {
  private readonly known = new LRUCache<string, SharedArrayBuffer>({
    ttl: KNOWN_MS,
    maxSize: BYTES_MAX,
    sizeCalculation: (words) => words.byteLength + ENTRY_BYTES,
  })

  /**
   * The words of the runs that an answer of the database names, in UTF-8; none where they are gone. `isKept`: whether the
   * words of a run stay as they are until it has more entries.
   */
  async of(
    answer: string,
    database: Queryable,
    project_id: string,
    isKept: boolean,
  ): Promise<SharedArrayBuffer[]> {
    const { runs } = JSON.parse(answer) as {
      runs: [session_id: string, seq: number, at: number, last_seq: number][]
    }
    const keys = runs.map(([session_id, seq, , last_seq]) => `${project_id} ${session_id} ${seq} ${last_seq}`)
    const words = keys.map((key) => (isKept ? this.known.get(key) : undefined))
    const wanted = runs.filter((_run, index) => words[index] === undefined)
    if (wanted.length > 0) {
      const rows = await database.query(READ_RUN_WORDS, [
        project_id,
        plainArray(wanted.map(([session_id]) => session_id)),
        plainArray(wanted.map(([, seq]) => seq)),
      ])
      const read = new Map(rows.map((row) => [`${row.session_id} ${row.seq}`, row.words!]))
      for (const [index, [session_id, seq]] of runs.entries()) {
        const found = words[index] === undefined && read.get(`${session_id} ${seq}`)
        if (!found) continue
        words[index] = shared(found)
        if (isKept) this.known.set(keys[index]!, words[index])
      }
    }
    return words.map((found) => found ?? NONE)
  }
}

function shared(text: string): SharedArrayBuffer {
  const bytes = Buffer.from(text)
  const memory = new SharedArrayBuffer(bytes.length)
  bytes.copy(new Uint8Array(memory))
  return memory
}
