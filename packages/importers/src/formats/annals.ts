import { MESSAGE_FORMATS } from '@annals/messages'
import { COMPACTION_TYPE } from '@annals/messages/context'
import { isJsonObject } from '@annals/messages/json'
import type { Format, Parser } from '../format.js'
import { listIn, objectIn, objectsIn, textIn } from '../json.js'
import type { EntryFacts, Output } from '../output.js'
import type { JsonObject, SummaryMessage } from '../records.js'

const RETRACTION_TYPE = 'annals.retraction'

/** What `annals export --format jsonl` writes, and GET /session/{id}/export: a session, and each of its entries. */
export const ANNALS: Format = {
  name: 'annals-jsonl',
  title: 'sessions of Annals, exported as jsonl',
  shape: 'lines',
  knows: ({ kind, configs, disable_task_tracking }) =>
    kind === 'session' && isJsonObject(configs) && typeof disable_task_tracking === 'boolean',
  open: (output) => new AnnalsParser(output),
}

class AnnalsParser implements Parser {
  private key = ''
  private readonly sessions = new Set<string>()
  /** Seqs that have no entry of their own here: the service writes them. */
  private written = new Set<number>()

  constructor(private readonly out: Output) {}

  read(value: unknown): void {
    const line = objectIn(value)
    if (line.kind === 'session') this.open(line)
    else if (typeof line.seq === 'number' && this.key !== '') this.entry(line, line.seq)
  }

  private open({ id, configs, user, parent_id }: JsonObject): void {
    if (this.key !== '') this.out.end(this.key)
    this.key = textIn(id) ?? 'session'
    this.written = new Set()
    const parent = textIn(parent_id)
    this.out.session(this.key, {
      configs: objectIn(configs),
      user,
      ...(parent !== undefined && this.sessions.has(parent) && { parent }),
    })
    this.sessions.add(this.key)
  }

  private entry(line: JsonObject, seq: number): void {
    const { type, created_at, occurred_at, retracted_by } = line
    const data = objectIn(line.data)
    if (type === RETRACTION_TYPE) {
      this.written.add(seq)
      const seqs = listIn(data.seqs).filter((one) => typeof one === 'number' && !this.written.has(one))
      this.out.accept()
      this.out.retract(
        this.key,
        seqs.map((one) => this.out.entryId(this.key, one as number)),
      )
    } else if (type === COMPACTION_TYPE && Array.isArray(data.summary)) {
      this.written.add(seq)
      this.out.accept()
      const at = this.out.entryId(this.key, Number(data.to_seq))
      if (retracted_by == null)
        this.out.compact(this.key, at, objectsIn(data.summary) as unknown as SummaryMessage[])
    } else if (typeof type === 'string' && WRITTEN_BY_SERVICE.has(type))
      this.out.raw(this.key, type, line, { native: seq, at: created_at, noise: true })
    else storeExactly(this.out, this.key, seq, { ...line, occurred_at: occurred_at ?? created_at })
  }
}

/** Types of events that only the service appends, of requests that are answered where they were made. */
const WRITTEN_BY_SERVICE: ReadonlySet<string> = new Set(['annals.request', 'annals.resolution'])

/** An entry as the API shows it. What is none is kept raw. */
export function storeExactly(out: Output, key: string, native: string | number, entry: unknown): void {
  const { kind, type, data, format, blob, meta, occurred_at: at, key: about } = objectIn(entry)
  const named = typeof about === 'string' ? { key: about } : {}
  const facts: EntryFacts = { native, at, is_exact: true, ...named, ...(isJsonObject(meta) && { meta }) }
  const found = MESSAGE_FORMATS.find((one) => one === format)
  if (kind === 'message' && found) out.message(key, found, blob, facts)
  else if (kind === 'event' && typeof type === 'string' && isJsonObject(data))
    out.event(key, type, data, facts)
  else out.raw(key, 'entry', entry, facts)
}
