import { setFlagsFromString } from 'node:v8'
import { AnnalsError } from '@annals/client'
import {
  type ImportNote,
  type ImportRecord,
  type Place,
  readImport,
  type SendTotals,
  sendImport,
  type Tally,
  UnknownFormat,
} from '@annals/importers'
import { StartError } from '@annals/kits/errors.js'
import { EXIT_CODES, exitCodeOfStatus } from '../exit_codes.js'
import { countOf } from '../terminal/count.js'
import { type Progress, withProgress } from '../terminal/progress.js'
import { visible } from '../terminal/visible.js'
import { type ConnectionOptions, connect } from './connection.js'
import { filesAround } from './files_around.js'
import { isFolder, type Source, sourcesIn, stdinSource, whyUnreadable } from './import_sources.js'

const RETRIES = 5
/** Most sentences about single lines; the report has the number of all. */
const TOLD_MAX = 20
const WATCH_EVERY_MS = 2_000

export interface ImportFilesOptions extends ConnectionOptions {
  format?: string
  user?: string
  /** In RFC 3339, in UTC. */
  since?: string
  dryRun?: boolean
  strict?: boolean
  watch?: boolean
}

/** Counts of what was read and stored. */
interface Report {
  /** Files and their lines, by format. */
  formats: Record<string, Tally & { files: number }>
  left_out: number
  messages: number
  events: number
  stored: SendTotals
  refused: (Place & { reason: string })[]
  warnings: (Place & { reason: string })[]
  changed: (Place & { session_id: string; id: string })[]
}

/** Imports files, folders or stdin through a service, or only reads them. `input` is what stdin brings. */
export async function importFiles(
  paths: readonly string[],
  options: ImportFilesOptions,
  input: AsyncIterable<Uint8Array> | undefined,
  signal: AbortSignal,
): Promise<void> {
  // What passes by is garbage at once. It would pile up, and take a third more memory to save a tenth of the time.
  setFlagsFromString('--optimize-for-size')
  const run = new ImportRun(options, signal)
  // Otherwise an interrupted command would wait for what whoever writes to it says next.
  if (input) signal.addEventListener('abort', () => process.stdin.destroy(signal.reason), { once: true })
  const find = async () => {
    if (input) return [stdinSource(input)]
    return (await Promise.all(paths.map((path) => sourcesIn(path, options.since)))).flat()
  }
  await run.connect()
  const sources = await find()
  await run.importAll(sources, !input && paths.length === 1 && !(await isFolder(paths[0]!)))
  run.print()
  if (options.watch) await run.watch(find, sources)
}

class ImportRun {
  private report: Report = newReport()
  /** Sessions that a dry run has seen. */
  private readonly found = new Set<string>()
  private annals: Awaited<ReturnType<typeof connect>>['annals'] | undefined
  /** While a folder is watched: the files as they were read last, and the entries that were sent. */
  private readonly seen = new Map<string, string>()
  private sent: Set<string> | undefined
  private readonly told = new Set<string>()

  constructor(
    private readonly options: ImportFilesOptions,
    private readonly signal: AbortSignal,
  ) {}

  async connect(): Promise<void> {
    if (this.options.dryRun) return
    this.annals = (await connect(this.options, RETRIES)).annals
    // A key that is refused should be refused before anything is read.
    await this.annals.ping({ signal: this.signal })
  }

  async importAll(sources: Source[], is_single: boolean): Promise<void> {
    const bytes = sources.reduce((sum, { size }) => sum + size, 0)
    const task = this.options.dryRun ? 'Reading' : 'Importing'
    await withProgress(task, 'bytes', bytes, async (progress) => {
      let done = 0
      const counted = (chunk: number) => {
        done += chunk
        progress.update(done, done)
      }
      const records = this.recordsOf(sources, is_single, counted)
      if (this.annals) {
        const { user } = this.options
        const { signal, sent } = this
        const onNote = (note: ImportNote) => this.note(note, progress)
        addTotals(this.report.stored, await sendImport(this.annals, records, { user, sent, signal, onNote }))
      } else for await (const record of records) if (record.kind !== 'entry') this.noteRead(record, progress)
    })
  }

  /** One file after the other: while the last entries of one are sent, the next is read. */
  private async *recordsOf(
    sources: Source[],
    is_single: boolean,
    counted: (bytes: number) => void,
  ): AsyncGenerator<ImportRecord> {
    const { format, since, watch: is_growing = false } = this.options
    for (const { name, size, open, path } of sources)
      try {
        const around = path === undefined ? {} : filesAround(path, size)
        const bytes = counting(open(), counted)
        yield* this.noted(readImport({ name, bytes, ...around }, { format, since, is_growing }))
      } catch (error) {
        const reason = whyUnreadable(error)
        if (!(error instanceof UnknownFormat) && reason === undefined) throw error
        if (is_single || (reason && this.options.strict))
          throw new StartError(reason ? `${name} ${reason}.` : (error as Error).message)
        if (reason) yield { kind: 'refused', place: { file: name, line: 0 }, reason }
        else this.report.left_out += 1
      }
  }

  /** Counts what passes by. */
  private async *noted(records: AsyncIterable<ImportRecord>): AsyncGenerator<ImportRecord> {
    let last: Extract<ImportRecord, { kind: 'progress' }> | undefined
    const close = () => {
      if (last) addTally(this.report.formats, last.format, last.tally)
      last = undefined
    }
    try {
      for await (const record of records) {
        this.signal.throwIfAborted()
        if (record.kind === 'format') close()
        if (record.kind === 'progress') last = record
        if (record.kind === 'entry') this.report[record.entry.kind === 'message' ? 'messages' : 'events'] += 1
        if (record.kind === 'refused' && this.options.strict)
          throw new StartError(`${placeOf(record.place)}: ${record.reason}.`)
        yield record
      }
    } finally {
      close()
    }
  }

  private noteRead(record: ImportRecord, progress: Progress): void {
    // The files of one archive may name the same session.
    if (record.kind === 'session' || record.kind === 'fork') {
      this.found.add(record.id)
      this.report.stored.sessions.stored = this.found.size
    }
    if (record.kind === 'refused' || record.kind === 'warning') this.note(record, progress)
  }

  private note(note: ImportNote, progress: Progress): void {
    if (note.kind === 'format' || note.kind === 'progress') return
    const { refused, warnings, changed } = this.report
    const say = (sentence: string) => {
      const line = visible(`annals: ${placeOf(note.place)}: ${sentence}.`)
      // A line of a file may become many entries.
      if (this.told.size > TOLD_MAX || this.told.has(line)) return
      this.told.add(line)
      if (this.told.size <= TOLD_MAX) progress.say(line)
      else progress.say('annals: there are more; the report counts them, and --json lists 1,000.')
    }
    if (note.kind === 'refused') {
      refused.push({ ...note.place, reason: note.reason })
      say(`refused: ${note.reason}`)
    } else if (note.kind === 'warning') {
      warnings.push({ ...note.place, reason: note.reason })
      say(note.reason)
    } else {
      changed.push({ ...note.place, session_id: note.session_id, id: note.id })
      say(`it has changed since it was imported; session ${note.session_id} keeps what it has`)
    }
  }

  /** Prints the report, and sets the exit code: 1 if anything was refused or had changed. */
  print(): void {
    const { report, options } = this
    if (options.json) process.stdout.write(`${JSON.stringify(reportJson(report))}\n`)
    else process.stdout.write(`${reportLines(report, options.dryRun === true).join('\n')}\n`)
    if (report.refused.length + report.changed.length > 0) process.exitCode = EXIT_CODES.failed
  }

  /** Imports what changes in a folder, until interrupted. `imported`: the files as they were before they were imported. */
  async watch(find: () => Promise<Source[]>, imported: readonly Source[]): Promise<void> {
    process.stderr.write('Watching for changes. Ctrl-C ends.\n')
    for (const source of imported) this.seen.set(placeIn(source), stateOf(source))
    this.sent = new Set()
    let is_away = false
    while (!this.signal.aborted) {
      await pause(WATCH_EVERY_MS, this.signal)
      const changed = (await find().catch(ifGone)).filter(
        (one) => this.seen.get(placeIn(one)) !== stateOf(one),
      )
      if (this.signal.aborted || changed.length === 0) continue
      for (const source of changed) this.seen.set(placeIn(source), stateOf(source))
      this.report = newReport()
      this.told.clear()
      const was_away = is_away
      is_away = false
      await this.importAll(changed, false).catch((error: unknown) => {
        if (!(error instanceof AnnalsError) || exitCodeOfStatus(error.status) !== EXIT_CODES.unavailable)
          throw error
        is_away = true
        // Not all of it was sent; what was is known by its ids.
        this.sent = new Set()
        for (const source of changed) this.seen.delete(placeIn(source))
        if (!was_away) process.stderr.write(`annals: ${visible(error.message)} It is tried again.\n`)
      })
      const { entries } = this.report.stored
      if (entries.stored > 0 && !this.signal.aborted)
        process.stdout.write(
          `Stored ${countOf(entries.stored, 'entries')} of ${countOf(changed.length, 'files')}.\n`,
        )
    }
  }
}

async function* counting(
  bytes: AsyncIterable<Uint8Array>,
  count: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of bytes) {
    yield chunk
    count(chunk.length)
  }
}

/** A watched file may be gone for a while, for example while it is being replaced. */
function ifGone(error: unknown): Source[] {
  if (error instanceof StartError) return []
  throw error
}

/** Files of several folders may have the same name. */
function placeIn({ name, path }: Source): string {
  return path ?? name
}

function stateOf({ size, changed_ms }: Source): string {
  return `${size} ${changed_ms}`
}

function placeOf({ file, line }: Place): string {
  return line === 0 ? file : `${file}:${line}`
}

function newReport(): Report {
  return {
    formats: {},
    left_out: 0,
    messages: 0,
    events: 0,
    stored: { sessions: { stored: 0, known: 0 }, entries: { stored: 0, known: 0, changed: 0, refused: 0 } },
    refused: [],
    warnings: [],
    changed: [],
  }
}

function addTally(formats: Report['formats'], format: string, tally: Readonly<Tally>): void {
  const sum = formats[format] ?? { files: 0, read: 0, mapped: 0, kept_raw: 0, refused: 0 }
  formats[format] = sum
  sum.files += 1
  for (const name of ['read', 'mapped', 'kept_raw', 'refused'] as const) sum[name] += tally[name]
}

function addTotals(sum: SendTotals, { sessions, entries }: SendTotals): void {
  for (const name of ['stored', 'known'] as const) sum.sessions[name] += sessions[name]
  for (const name of ['stored', 'known', 'changed', 'refused'] as const) sum.entries[name] += entries[name]
}

function reportJson({
  formats,
  left_out,
  messages,
  events,
  stored,
  refused,
  warnings,
  changed,
}: Report): object {
  const some = <T>(list: T[]) => list.slice(0, 1_000)
  return {
    formats,
    files_left_out: left_out,
    messages,
    events,
    ...stored,
    refused: some(refused),
    warnings: some(warnings),
    changed: some(changed),
  }
}

function reportLines(report: Report, is_dry: boolean): string[] {
  const { formats, left_out, messages, events, stored } = report
  const lines = Object.entries(formats).map(
    ([name, { files, read, mapped, kept_raw, refused }]) =>
      `${name}: ${countOf(files, 'files')}, ${countOf(read, 'lines')} read: ${mapped.toLocaleString('en')} mapped, ${kept_raw.toLocaleString('en')} kept raw, ${refused.toLocaleString('en')} refused.`,
  )
  if (left_out > 0) lines.push(`${countOf(left_out, 'files')} of no known format left out.`)
  if (lines.length === 0) lines.push('No file to import was found.')
  const { sessions, entries } = stored
  if (is_dry) {
    lines.push(
      `Would import ${countOf(sessions.stored, 'sessions')} with ${countOf(messages, 'messages')} and ${countOf(events, 'events')}.`,
    )
    return lines
  }
  lines.push(`Imported ${countOf(sessions.stored, 'sessions')}, ${countOf(entries.stored, 'entries')}.`)
  lines.push(`Already there: ${countOf(sessions.known, 'sessions')}, ${countOf(entries.known, 'entries')}.`)
  if (entries.changed > 0)
    lines.push(
      entries.changed === 1
        ? '1 entry has changed since it was imported, and stays as it is.'
        : `${countOf(entries.changed, 'entries')} have changed since they were imported, and stay as they are.`,
    )
  if (entries.refused > 0) lines.push(`The service refused ${countOf(entries.refused, 'entries')}.`)
  return lines
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done)
  })
}
