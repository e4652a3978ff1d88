import { columnsOf, wholeTime } from '@annals/kits/postgres/column_aggregates.js'
import type { Row } from '@annals/kits/postgres/database.js'
import { type Compaction, readCompaction } from '@annals/messages/context'
import { entryJson, type ShownEntry, type ShownLog } from '../append/append_request.js'
import { type EntryView, VIEW_COLUMNS } from './read_queries.js'

/** An entry as it is read: its number, its JSON text, and what other columns its view has. */
export interface ReadEntry {
  seq: number
  /** A SessionEvent or an item of the timeline; a message's blob as it was written, or what else its view is of. */
  json: string
  kind?: string
  /** Of an event or an item; of the last but one of as many messages as were asked for, or the newest for a context. */
  created_at?: string
  key?: string | null
  id?: string
  parent_id?: string | null
  format?: string
  role?: string
  meta?: string
  tokens?: number
  /** The Message as JSON text, without its parts. */
  whole?: string
}

export function entriesOf(row: Row, view: EntryView, log: ShownLog): ReadEntry[] {
  const columns = columnsOf(VIEW_COLUMNS[view], row)
  const seqs = columns.seq!.map(Number)
  if (view === 'message_id') return seqs.map((seq, at) => ({ seq, json: columns.id![at]! }))
  if (view === 'message_meta') return seqs.map((seq, at) => ({ seq, json: columns.meta![at]! }))
  if (view === 'message' || view === 'whole_message' || view === 'context_message') {
    const { id, data, tokens, message } = columns
    return seqs.map((seq, at) => {
      const { format, parent_id, role, meta } = messageFields(message![at]!)
      return {
        seq,
        json: data![at]!,
        id: id![at]!,
        format,
        parent_id,
        role,
        meta,
        tokens: Number(tokens![at]),
        ...(view === 'whole_message' && { whole: entryJson('resource', log, shownEntry(columns, seq, at)) }),
      }
    })
  }
  const shape = view === 'event' ? 'resource' : 'item'
  return seqs.map((seq, at) => {
    const entry = shownEntry(columns, seq, at)
    return {
      seq,
      json: entryJson(shape, log, entry),
      kind: entry.kind,
      key: entry.key!,
      created_at: entry.created_at,
    }
  })
}

type Instruction = [seq: number, id: string, parent_id: string, format: string, tokens: number, json: string]

export function instructionsOf({ instructions }: Row): ReadEntry[] {
  const read = JSON.parse(instructions ?? '[]') as Instruction[]
  return read.map(([seq, id, parent_id, format, tokens, json]) => ({
    seq,
    id,
    parent_id,
    format,
    tokens,
    json,
  }))
}

export type ReadCompaction = Compaction & { seq: number; id: string }

export function compactionOf({ compaction_seq, compaction_id, compaction }: Row): ReadCompaction | undefined {
  const read = compaction ? readCompaction(compaction) : undefined
  return read && { ...read, seq: Number(compaction_seq), id: compaction_id! }
}

type Columns = Record<string, Array<string | null>>
const NONE: Array<string | null> = []
type Marks = [
  key: string | null,
  retracted_by: number | null,
  changed_at: string | null,
  occurred_at: string | null,
]
const NO_MARKS: Marks = [null, null, null, null]
const NO_FIELDS = { format: null, parent_id: null, role: null, meta: null }

/** Every member is named: spreading objects together costs as much as all the rest of an entry. */
function shownEntry(columns: Columns, seq: number, at: number): ShownEntry {
  const { id, type = NONE, data, created_at, message = NONE } = columns
  const text = message[at]
  const [key, retracted_by, changed_at, occurred_at] = marksOf(columns, at)
  const { format, parent_id, role, meta } = text ? messageFields(text) : NO_FIELDS
  return {
    seq,
    id: id![at]!,
    kind: text ? 'message' : 'event',
    type: type[at] ?? null,
    format,
    parent_id,
    role,
    meta,
    key,
    retracted_by,
    occurred_at,
    data: data![at]!,
    created_at: created_at![at]!,
    updated_at: changed_at ?? created_at![at]!,
  }
}

function marksOf({ marks, key, changed_at, occurred_at }: Columns, at: number): Marks {
  if (!marks) return [key![at]!, null, changed_at![at]!, occurred_at![at]!]
  if (!marks[at]) return NO_MARKS
  const [named, retracted_by, time, occurred] = JSON.parse(marks[at]) as Marks
  return [named, retracted_by, time && wholeTime(time), occurred && wholeTime(occurred)]
}

/** The fields in the column `message`, of which only the last, its meta, can have spaces in it. */
function messageFields(text: string) {
  const parent = text.indexOf(' ') + 1
  const role = text.indexOf(' ', parent) + 1
  const meta = text.indexOf(' ', role) + 1
  return {
    format: text.slice(0, parent - 1),
    parent_id: text.slice(parent, role - 1) || null,
    role: text.slice(role, meta - 1),
    meta: text.slice(meta) || null!,
  }
}
