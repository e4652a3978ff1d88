import { StartError } from '../../errors.js'
import type { Database } from '../../postgres/database.js'
import { isForeignKeyViolation, isUniqueViolation, isUnstorable } from '../../postgres/database_errors.js'
import type { SessionRecord } from './export_format.js'
import type { ExportLine, ExportReader } from './read_export.js'
import {
  type Conflict,
  type RestoreBatch,
  type RestoreOutcome,
  restoreBatch,
  type Tally,
} from './restore_batch.js'

/** Limits of one transaction: a larger one is no faster, and an interruption would lose more. */
const BATCH_LINES_MAX = 2_000
const BATCH_CHARACTERS_MAX = 4 * 1024 * 1024
const ATTEMPTS_MAX = 5

/** What an import stored, and what already existed. */
export interface ImportTotals {
  users: Tally
  learning_spaces: Tally
  sessions: Tally
  entries: Tally
  conflicts: number
}

export interface ImportOptions {
  project_id: string
  dry_run: boolean
  signal: AbortSignal
  /** Called after each transaction with the byte of the file up to which everything is stored. */
  onProgress: (bytes: number) => void
  onConflict: (conflict: Conflict) => void
}

/** Reads a whole export and stores nothing. @throws StartError that names the line and what is wrong with it */
export async function checkExport(
  reader: ExportReader,
  signal: AbortSignal,
  onProgress: (bytes: number) => void,
): Promise<void> {
  for await (const lines of reader.read()) {
    signal.throwIfAborted()
    onProgress(lines.at(-1)!.end_offset)
  }
}

/**
 * Restores an export, one bounded batch per transaction. If it is interrupted, it has stored the beginning of the
 * export, each log without gaps; run again, it stores the rest. While one batch is stored, the next one is read.
 * @throws StartError that names the line and what is wrong with it; the lines before it may be stored by then
 */
export async function importExport(
  database: Database,
  reader: ExportReader,
  options: ImportOptions,
): Promise<ImportTotals> {
  const restoring = new Restoring(database, options)
  let batch = new OpenBatch()
  const hand = async () => {
    const full = batch
    batch = new OpenBatch()
    await restoring.take(full)
    options.signal.throwIfAborted()
  }
  try {
    for await (const lines of reader.read()) {
      for (const line of lines) {
        if (!batch.fits(line)) await hand()
        batch.add(line)
      }
    }
    await hand()
  } finally {
    await restoring.settled()
  }
  return restoring.totals
}

/** Collects lines until there are enough of them. */
class OpenBatch implements RestoreBatch {
  readonly users: RestoreBatch['users'] = []
  readonly learning_spaces: RestoreBatch['learning_spaces'] = []
  readonly sessions: RestoreBatch['sessions'] = []
  readonly entries: RestoreBatch['entries'] = []
  readonly ids = new Set<string>()
  first_line = 0
  last: ExportLine | undefined
  private lines = 0
  private characters = 0

  fits(line: ExportLine): boolean {
    if (this.lines === 0) return true
    // A repeated line finds itself in the database, and is equal or a conflict like any other.
    if (this.ids.has(idOf(line))) return false
    return this.lines < BATCH_LINES_MAX && this.characters + line.text.length <= BATCH_CHARACTERS_MAX
  }

  add(line: ExportLine): void {
    this.ids.add(idOf(line))
    this.lines += 1
    this.characters += line.text.length
    this.first_line ||= line.number
    this.last = line
    switch (line.kind) {
      case 'user':
        this.users.push(line)
        break
      case 'learning_space':
        this.learning_spaces.push(line)
        break
      case 'session':
        this.sessions.push(line)
        break
      default:
        this.entries.push(line)
    }
  }
}

function idOf({ kind, record }: ExportLine): string {
  return 'session_id' in record ? `${record.session_id}/${record.id}` : `${kind}/${record.id}`
}

/** Stores one batch at a time, in order. */
class Restoring {
  readonly totals: ImportTotals = {
    users: { stored: 0, known: 0 },
    learning_spaces: { stored: 0, known: 0 },
    sessions: { stored: 0, known: 0 },
    entries: { stored: 0, known: 0 },
    conflicts: 0,
  }
  private running: Promise<void> = Promise.resolve()
  /** A session in conflict whose entries continue in the next batch. */
  private refused: SessionRecord | undefined

  constructor(
    private readonly database: Database,
    private readonly options: ImportOptions,
  ) {}

  /** Resolves when the previous batch is stored and this one is in progress. @throws the previous batch's error */
  async take(batch: OpenBatch): Promise<void> {
    await this.running
    this.running = this.store(batch)
    // It is thrown to the next caller that waits.
    this.running.catch(() => {})
  }

  /** Resolves when the last batch is stored. */
  async settled(): Promise<void> {
    await this.running
  }

  private async store(batch: OpenBatch): Promise<void> {
    const { last } = batch
    if (!last) return
    const entries = batch.entries.filter(({ session }) => session !== this.refused)
    const outcome = await this.restore({ ...batch, entries }, batch)
    for (const name of ['users', 'learning_spaces', 'sessions', 'entries'] as const) {
      this.totals[name].stored += outcome[name].stored
      this.totals[name].known += outcome[name].known
    }
    this.totals.conflicts += outcome.conflicts.length
    outcome.conflicts.forEach(this.options.onConflict)
    const { session } = last
    if (session && outcome.conflicts.some(({ id }) => id === session.id)) this.refused = session
    this.options.onProgress(last.end_offset)
  }

  /** Retries a transaction if another one created the same user or session at the same moment. */
  private async restore(batch: RestoreBatch, { first_line, last }: OpenBatch): Promise<RestoreOutcome> {
    const { project_id, dry_run } = this.options
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.database.transaction((connection) =>
          restoreBatch(connection, project_id, batch, dry_run),
        )
      } catch (error) {
        const isTaken = isUniqueViolation(error) || isForeignKeyViolation(error)
        if (isTaken && attempt < ATTEMPTS_MAX) continue
        if (!isTaken && !isUnstorable(error)) throw error
        const { message, detail = message } = error as { message: string; detail?: string }
        throw new StartError(`Lines ${first_line} to ${last!.number}: they cannot be stored (${detail}).`, {
          cause: error,
        })
      }
    }
  }
}
