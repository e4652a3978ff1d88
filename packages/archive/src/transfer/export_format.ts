import type { Table } from '@annals/kits/lifecycle/table.js'
import { isJsonObject, isRefusal, readStorable } from '@annals/messages/json'
import { absentBefore, CHECKS, type LineCheck, lineChecks } from '../columns.js'
import { ownOf } from '../tables.js'
import { type ExportLine, wrongLine } from './export_line.js'

/**
 * The format of an export: JSON lines, each an object with its `kind`, between a header and a last line with the
 * checksum. docs/export-format.md describes it for others; this file checks it.
 */
export const FORMAT_VERSION = 1

/** The first line. `user` or `session_id` is set if only that was exported. */
export interface ExportHeader {
  annals_export: number
  what: 'project' | 'user' | 'session'
  project_id: string
  project: string
  user?: string
  session_id?: string
  exported_at: string
  annals_version: string
  schema_version: number
}

export interface EndRecord {
  lines: number
  sha256: string
}

/** A kind of line: the form of its members, its table, and its key there. */
export interface LineKind {
  table: Table | undefined
  checks: Record<string, LineCheck>
  key: readonly string[]
}

const END: LineKind = {
  table: undefined,
  key: [],
  checks: {
    lines: {
      takes: `an integer from 1 to ${Number.MAX_SAFE_INTEGER}`,
      fits: (value) => Number.isInteger(value) && (value as number) >= 1,
    },
    sha256: { ...CHECKS.text, takes: 'a SHA-256 in hex' },
  },
}

export function lineKinds(tables: readonly Table[]): Map<string, LineKind> {
  const kinds = new Map<string, LineKind>()
  for (const table of tables.filter(({ exported }) => exported)) {
    const { line = table.columns, further_lines, absent_before = [], forms } = ownOf(table)
    const own = { [table.kind]: { columns: line, key: table.key } }
    for (const [kind, { columns, key }] of Object.entries({ ...own, ...further_lines }))
      kinds.set(kind, { table, key, checks: lineChecks(columns) })
    Object.assign(kinds.get(table.kind)!.checks, forms)
    for (const name of absent_before) kinds.get(table.kind)!.checks[name] = absentBefore(line[name]!)
  }
  return kinds.set('end', END)
}

/** Reads the first line. @throws StartError if it is not a header, or has an unknown format version */
export function readHeader(source: Buffer): ExportHeader {
  const { value } = readLine(source, 1)
  if (!('annals_export' in value)) {
    throw wrongLine(
      1,
      'this is not the header of an Annals export. Leave out --project to import other formats with an API key.',
    )
  }
  if (value.annals_export !== FORMAT_VERSION) {
    throw wrongLine(
      1,
      `this export has format version ${JSON.stringify(value.annals_export)}; this version of Annals reads version ${FORMAT_VERSION}. Use a version that knows it.`,
    )
  }
  return value as unknown as ExportHeader
}

/** Reads a line after the header. @throws StartError with what is wrong */
export function readExportLine(
  kinds: ReadonlyMap<string, LineKind>,
  source: Buffer,
  number: number,
): Omit<ExportLine, 'end_offset'> {
  const { text, value } = readLine(source, number)
  const { kind, ...record } = value
  const known = kinds.get(String(kind))
  if (!known) {
    throw wrongLine(
      number,
      `kind must be one of ${[...kinds.keys()].join(', ')}; it is ${JSON.stringify(kind)}. If a newer Annals wrote the export, import it with that version.`,
    )
  }
  const { checks } = known
  for (const [name, check] of Object.entries(checks)) {
    if (!check.fits(record[name])) {
      const missing = Object.hasOwn(record, name) ? '' : ' It is missing.'
      throw wrongLine(number, `${name} of a line of kind ${kind} must be ${check.takes}.${missing}`)
    }
  }
  const unknown = Object.keys(record).find((name) => !Object.hasOwn(checks, name))
  if (unknown !== undefined) {
    throw wrongLine(number, `a line of kind ${kind} has no ${JSON.stringify(unknown)}.`)
  }
  return { number, text, kind: kind as string, record }
}

/** A line of any file of JSON lines. @throws StartError if it is not a JSON object that can be stored */
export function readLine(source: Buffer, number: number): { text: string; value: Record<string, unknown> } {
  const json = readStorable(source)
  if (isRefusal(json)) {
    throw wrongLine(
      number,
      json.refused === 'not_json'
        ? `it is not JSON: ${json.reason}.`
        : `it cannot be stored: at ${json.pointer || '/'} ${json.reason}.`,
    )
  }
  const { text, value } = json
  if (!isJsonObject(value)) throw wrongLine(number, 'it is not a JSON object.')
  return { text, value }
}
