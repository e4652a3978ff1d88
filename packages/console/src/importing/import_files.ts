import type { Annals } from '@annals/client'
import { readImport, sendImport, type Tally, UnknownFormat } from '@annals/importers'

const TOLD_MAX = 20

/** What was read and stored of some files. */
export interface ImportReport {
  /** A sentence for each format. */
  formats: string[]
  sessions: { stored: number; known: number }
  entries: { stored: number; known: number }
  /** What was refused, has changed or is left out: the first of it, by file and line. */
  notes: string[]
  notes_count: number
}

/** Reads files of other tools in the browser, and stores what is in them as any client does. */
export async function importFiles(
  annals: Annals,
  files: readonly File[],
  onProgress: (done: string) => void,
): Promise<ImportReport> {
  const report: ImportReport = {
    formats: [],
    sessions: { stored: 0, known: 0 },
    entries: { stored: 0, known: 0 },
    notes: [],
    notes_count: 0,
  }
  const note = (text: string) => {
    report.notes_count += 1
    if (report.notes.length < TOLD_MAX) report.notes.push(text)
  }
  for (const file of files) await importFile(annals, file, report, note, onProgress)
  return report
}

async function importFile(
  annals: Annals,
  file: File,
  report: ImportReport,
  note: (text: string) => void,
  onProgress: (done: string) => void,
): Promise<void> {
  const tallies = new Map<string, Tally>()
  let read = 0
  const counting = (bytes: number) => {
    read += bytes
    onProgress(`${file.name}: ${Math.round((100 * read) / Math.max(1, file.size))} %`)
  }
  try {
    const slice = async (from: number, to: number) => new Uint8Array(await file.slice(from, to).arrayBuffer())
    const records = readImport({
      name: file.webkitRelativePath || file.name,
      bytes: bytesOf(file, counting),
      parts: { size: file.size, slice },
    })
    const totals = await sendImport(annals, records, {
      onNote: (one) => {
        if (one.kind === 'progress') tallies.set(one.format, one.tally)
        else if (one.kind === 'refused')
          note(`${one.place.file}, line ${one.place.line}: refused, ${one.reason}`)
        else if (one.kind === 'warning') note(`${one.place.file}, line ${one.place.line}: ${one.reason}`)
        else if (one.kind === 'changed')
          note(
            `${one.place.file}, line ${one.place.line}: has changed since it was imported, and stays as it was`,
          )
      },
    })
    for (const name of ['stored', 'known'] as const) {
      report.sessions[name] += totals.sessions[name]
      report.entries[name] += totals.entries[name]
    }
  } catch (error) {
    if (!(error instanceof UnknownFormat)) throw error
    note(error.message)
  }
  for (const [format, { read: lines, mapped, kept_raw, refused }] of tallies)
    report.formats.push(
      `${file.name} is ${format}: ${lines} lines read, ${mapped} mapped, ${kept_raw} kept raw, ${refused} refused.`,
    )
}

async function* bytesOf(file: File, count: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  const reader = file.stream().getReader()
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      yield next.value
      count(next.value.length)
    }
  } finally {
    await reader.cancel()
  }
}
