import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type ReadOptions, readImport } from '../src/read_import.ts'
import type { ImportedEntry, ImportRecord } from '../src/records.ts'

const FIXTURES = fileURLToPath(new URL('fixtures/', import.meta.url))

export function fixture(name: string): Buffer {
  return readFileSync(`${FIXTURES}${name}`)
}

export async function* chunks(bytes: Uint8Array, size = bytes.length): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += Math.max(1, size)) yield bytes.subarray(at, at + size)
}

/** Everything that reading a file gives. */
export async function recordsOf(
  name: string,
  bytes: Uint8Array | string = fixture(name),
  options: ReadOptions & { chunk?: number } = {},
): Promise<ImportRecord[]> {
  const records: ImportRecord[] = []
  const content = typeof bytes === 'string' ? Buffer.from(bytes) : bytes
  for await (const record of readImport({ name, bytes: chunks(content, options.chunk) }, options))
    records.push(record)
  return records
}

/** The last count of what became of the lines. */
export function tallyOf(records: ImportRecord[]) {
  return records.findLast((record) => record.kind === 'progress')?.tally
}

/** One line for each record that says something of a session, with short names for ids. */
export function outline(records: ImportRecord[]): string[] {
  const names = new Map<string, string>()
  const nameOf = (id: string) => names.get(id) ?? names.set(id, `s${names.size + 1}`).get(id)!
  return records.flatMap((record) => {
    if (record.kind === 'session')
      return `${nameOf(record.id)}${record.parent_id ? ` below ${nameOf(record.parent_id)}` : ''}${record.user ? ` of ${record.user}` : ''} ${JSON.stringify(record.configs)}`
    if (record.kind === 'fork')
      return `${nameOf(record.id)} fork of ${nameOf(record.of)} ${JSON.stringify(record.configs)}`
    if (record.kind === 'configs') return `${nameOf(record.session_id)} ${JSON.stringify(record.configs)}`
    if (record.kind === 'retraction') return `${nameOf(record.session_id)} takes back ${record.ids.length}`
    if (record.kind === 'refused') return `refused ${record.place.line}: ${record.reason}`
    if (record.kind !== 'entry') return []
    const { entry, session_id } = record
    const at = entry.occurred_at ? ` at ${entry.occurred_at.slice(11, 19)}` : ''
    if (entry.kind === 'event')
      return `${nameOf(session_id)} ${entry.type}${entry.data.noise ? ' (noise)' : ''}${at}`
    const { role, type } = entry.blob
    return `${nameOf(session_id)} ${entry.format} ${role ?? type}${at}`
  })
}

/** Values as JSON lines. */
export function lines(...values: unknown[]): string {
  return `${values.map((value) => JSON.stringify(value)).join('\n')}\n`
}

export function entriesIn(records: ImportRecord[]): ImportedEntry[] {
  return records.flatMap((record) => (record.kind === 'entry' ? [record.entry] : []))
}

export function blobsIn(records: ImportRecord[]): unknown[] {
  return entriesIn(records).flatMap((entry) => (entry.kind === 'message' ? [entry.blob] : []))
}

/** The messages that nothing took back. */
export function leftIn(records: ImportRecord[]): unknown[] {
  const taken = new Set(records.flatMap((record) => (record.kind === 'retraction' ? record.ids : [])))
  return blobsIn(records.filter((record) => record.kind !== 'entry' || !taken.has(record.entry.id)))
}

export function formatOf(records: ImportRecord[]): string | undefined {
  return records.find((record) => record.kind === 'format')?.format
}
