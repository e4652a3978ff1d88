import {
  type Annals,
  AnnalsError,
  type JsonObject,
  type NewCompaction,
  type NewEntry,
  type Session,
  type TimelineItem,
} from '@annals/client'
import { stableId } from '@annals/importers'
import { StartError } from '@annals/kits/errors.js'
import { parseJson, writeJson } from '@annals/messages/json'
import { DEFAULT_RULES, type ReadyRule, type Rule, readyRules, rewriteJson } from '@annals/redaction'

const PAGE = 200
const ENTRIES_AT_ONCE_MAX = 500
const LENGTH_AT_ONCE_MAX = 512 * 1024
/** Ids that one retraction may name. */
const IDS_MAX = 200
/** In messages, the service stores longer base64 as attachments, which it does not look into. */
const BASE64_LENGTH_MAX = 32 * 1024
const BASE64 = /^(?:data:[^,]{0,200};base64,)?[A-Za-z0-9+/_-]+={0,2}$/
/** The config of a copy that names its original. */
const REDACTED_FROM = 'redacted_from'

const RETRACTION = 'annals.retraction'
const COMPACTION = 'annals.compaction'
/** Events that only the service appends, and their stand-ins in a copy, where nobody waits for an answer. */
const RENAMED: ReadonlyMap<string, string> = new Map([
  ['annals.request', 'copied.request'],
  ['annals.resolution', 'copied.resolution'],
])

/** Counts of the findings in a session, without any value, and the copy that was made. */
export interface Redacted {
  session_id: string
  entries: number
  /** How often, by class. */
  found: Record<string, number>
  entries_with_findings: number
  /** Attachments, which are not examined: in the copy they are the same. */
  attachments: number
  copy: { session_id: string; entries: number; added: number } | null
}

export function isCopy({ configs }: Session): boolean {
  return typeof configs[REDACTED_FROM] === 'string'
}

/** @throws StartError if nothing would be redacted */
export async function openRedaction(
  annals: Annals,
  is_dry: boolean,
  signal: AbortSignal,
): Promise<Redaction> {
  const { rules: stored } = await annals.redaction.get({ signal })
  if (((await annals.key({ signal })) as { masked?: boolean }).masked)
    throw new StartError(
      'This API key is masked: it cannot read what is stored. Use a key that is not masked.',
    )
  const all = (stored as unknown as readonly Rule[] | null) ?? (is_dry ? DEFAULT_RULES : [])
  const rules = all.filter(({ when }) => when === 'write')
  if (rules.length === 0)
    throw new StartError('The project has no rules for writing. Set them first: PUT /api/v1/redaction.')
  return new Redaction(annals, rules, is_dry, stored === null, signal)
}

export class Redaction {
  private readonly ready: readonly ReadyRule[]
  private readonly refusing: readonly ReadyRule[]

  constructor(
    private readonly annals: Annals,
    private readonly rules: readonly Rule[],
    private readonly is_dry: boolean,
    readonly are_default: boolean,
    private readonly signal: AbortSignal,
  ) {
    // Values that a rule refuses are counted, and masked in a copy.
    const masking = (rule: Rule): Rule => (rule.do === 'refuse' ? { ...rule, do: 'mask' } : rule)
    this.ready = readyRules(rules.map(masking))
    this.refusing = readyRules(rules.filter((rule) => rule.do === 'refuse').map(masking))
  }

  /** Counts what the rules find in a session, and makes or completes its copy if they find anything. */
  async redact(session_id: string): Promise<Redacted> {
    const session = await this.annals.sessions.get(session_id, this.call)
    const counts = await this.count(session)
    const total = Object.values(counts.found).reduce((sum, one) => sum + one, 0)
    const copy = this.is_dry || total === 0 ? null : await this.copy(session)
    return { session_id, ...counts, copy }
  }

  private get call() {
    return { signal: this.signal }
  }

  private async *entriesOf(session_id: string, after_seq = 0): AsyncGenerator<TimelineItem> {
    const query = { limit: PAGE, ...(after_seq > 0 && { after_seq }) }
    for await (const item of this.annals.sessions.timeline(session_id, query, this.call)) {
      this.signal.throwIfAborted()
      yield item
    }
  }

  private async count({ id, configs }: Session): Promise<Omit<Redacted, 'session_id' | 'copy'>> {
    const found: Record<string, number> = {}
    const counts = { entries: 0, found, entries_with_findings: 0, attachments: 0 }
    const add = (names: string[]) => {
      for (const name of names) found[name] = (found[name] ?? 0) + 1
    }
    add(this.namesIn({ configs }))
    for await (const item of this.entriesOf(id)) {
      const { entry, attachments } = withoutAttachments(contentOf(item))
      const names = this.namesIn({ entries: [entry] })
      add(names)
      counts.entries += 1
      counts.entries_with_findings += names.length > 0 ? 1 : 0
      counts.attachments += attachments
    }
    return counts
  }

  /** The classes of what is found in a body that is or would be sent. */
  private namesIn(body: object): string[] {
    const text = writeJson(body)
    const outcome = rewriteJson(text, { rules: this.ready, request: JSON.parse(text) })
    return outcome && 'marks' in outcome ? outcome.marks.map(({ kind }) => kind.name.toLowerCase()) : []
  }

  /** A body without what a rule refuses. */
  private acceptable<Body extends object>(body: Body): Body {
    if (this.refusing.length === 0) return body
    const text = writeJson(body)
    const outcome = rewriteJson(text, { rules: this.refusing, request: JSON.parse(text) })
    return outcome && 'marks' in outcome
      ? (parseJson(outcome.text(({ kind }) => `<${kind.name}>`)) as Body)
      : body
  }

  /**
   * Appends to the copy what it does not have, so that each entry has the seq of its original. The service applies the
   * rules, since it alone knows the numbers and hashes of masks.
   */
  private async copy(session: Session): Promise<NonNullable<Redacted['copy']>> {
    const id = stableId('redact', session.id, JSON.stringify(this.rules))
    await this.open(session, id)
    const base = await this.lastSeq(session.id, id)
    const batch = { entries: [] as NewEntry[], length: 0, seq: base }
    const send = async () => {
      if (batch.entries.length === 0) return
      const if_match = batch.seq - batch.entries.length
      const { entries } = this.acceptable({ entries: batch.entries })
      await this.annals.sessions.appendBatch(id, entries, { ...this.call, if_match })
      batch.entries = []
      batch.length = 0
    }
    for await (const item of this.entriesOf(session.id, base)) {
      if (item.seq !== batch.seq + 1)
        throw new StartError(`Session ${session.id} has no entry ${batch.seq + 1}.`)
      const isOwn = item.kind === 'event' && (item.type === RETRACTION || item.type === COMPACTION)
      const entry = { ...contentOf(item), id: stableId('redact', id, item.id) }
      const length = isOwn ? 0 : writeJson(entry).length
      const is_full =
        batch.entries.length >= ENTRIES_AT_ONCE_MAX || batch.length + length > LENGTH_AT_ONCE_MAX
      if (isOwn || is_full) await send()
      if (!isOwn) {
        batch.entries.push(entry)
        batch.length += length
      } else if (item.type === RETRACTION) await this.retract(id, item.seq, item.data)
      else await this.compact(id, item.seq, item.data)
      batch.seq = item.seq
    }
    await send()
    await this.verify(id)
    return { session_id: id, entries: batch.seq, added: batch.seq - base }
  }

  /** The copy, which begins empty and has the user and the parent of its original. */
  private async open({ id: original, configs }: Session, id: string): Promise<void> {
    const there = await this.annals.sessions.get(id, this.call).catch((error: unknown) => {
      if (error instanceof AnnalsError && error.error === 'session_not_found') return undefined
      throw error
    })
    const named = { [REDACTED_FROM]: original }
    if (!there)
      await this.annals.sessions.fork(original, { configs: named, use_uuid: id, up_to_seq: 0 }, this.call)
    // Masks in what a fork is given are numbered as those of its original.
    if (Object.keys(there?.configs ?? named).length === 1)
      await this.annals.sessions.configs.replace(id, this.acceptable({ ...configs, ...named }), this.call)
  }

  /** @throws AnnalsError if the copy has gone on by itself */
  private async lastSeq(original: string, id: string): Promise<number> {
    const [last] = (await this.annals.sessions.timeline(id, { time_desc: true, limit: 1 }, this.call).page())
      .items
    if (!last) return 0
    const query = { after_seq: last.seq - 1, limit: 1 }
    const [source] = (await this.annals.sessions.timeline(original, query, this.call).page()).items
    const isMade = last.kind === 'event' && (last.type === RETRACTION || last.type === COMPACTION)
    const isSame =
      source !== undefined &&
      (isMade
        ? source.kind === 'event' && source.type === last.type
        : last.id === stableId('redact', id, source.id))
    if (!isSame)
      throw new StartError(
        `Session ${id} has entries of its own, so the copy cannot be completed. Delete it to make a new copy.`,
      )
    return last.seq
  }

  private async retract(id: string, seq: number, data: JsonObject): Promise<void> {
    const { seqs, compactions = [] } = data as { seqs: number[]; compactions?: number[] }
    const asked = seqs.filter((one) => !compactions.includes(one))
    const which =
      asked.length > IDS_MAX ? { after_seq: Math.min(...asked) - 1 } : { ids: await this.idsAt(id, asked) }
    const options = { ...this.call, if_match: seq - 1 }
    const { retraction } = await this.annals.sessions.retract(id, which, options)
    if (writeJson(retraction?.data.seqs) !== writeJson(seqs))
      throw new StartError(`Retraction ${seq} cannot be repeated in session ${id}: delete it.`)
  }

  private async compact(id: string, seq: number, data: JsonObject): Promise<void> {
    const {
      from_seq,
      to_seq,
      summary,
      by,
      model,
      except_seqs = [],
    } = data as unknown as NewCompaction & {
      except_seqs?: number[]
    }
    const except = await this.idsAt(id, except_seqs)
    const compaction = this.acceptable({
      from_seq,
      to_seq,
      summary,
      ...(by !== undefined && { by }),
      ...(model !== undefined && { model }),
      ...(except.length > 0 && { except }),
    })
    await this.annals.sessions.compact(id, compaction, { ...this.call, if_match: seq - 1 })
  }

  private async idsAt(id: string, seqs: number[]): Promise<string[]> {
    const ids: string[] = []
    for (const seq of seqs) {
      const query = { after_seq: seq - 1, limit: 1 }
      ids.push((await this.annals.sessions.timeline(id, query, this.call).page()).items[0]!.id)
    }
    return ids
  }

  /** A node may not know new rules yet, and they may have been removed. @throws StartError */
  private async verify(id: string): Promise<void> {
    const copy = await this.annals.sessions.get(id, this.call)
    const { found } = await this.count(copy)
    const left = Object.entries(found).map(([name, count]) => `${name} ${count}`)
    if (left.length > 0)
      throw new StartError(
        `The rules still find something in the copy ${id}: ${left.join(', ')}. The service may not apply them, or a pattern finds the masks themselves. Delete the copy, and run the command again.`,
      )
  }
}

/** An entry as it would be appended. It happened when its original did. */
function contentOf(item: TimelineItem): NewEntry {
  const at = { occurred_at: item.occurred_at ?? item.created_at, ...(item.key != null && { key: item.key }) }
  if (item.kind === 'event')
    return { kind: 'event', type: RENAMED.get(item.type) ?? item.type, data: item.data, ...at }
  const { format, blob, meta } = item
  return { kind: 'message', format, blob, meta, ...at }
}

/** An entry without its attachments, and how many it has. */
function withoutAttachments(entry: NewEntry): { entry: NewEntry; attachments: number } {
  let attachments = 0
  const inMessage = entry.kind === 'message'
  const without = (value: unknown): unknown => {
    if (typeof value === 'string') {
      if (!inMessage || value.length <= BASE64_LENGTH_MAX || !BASE64.test(value)) return value
      attachments += 1
      return ''
    }
    if (Array.isArray(value)) return value.map(without)
    if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype)
      return value
    const members = Object.entries(value)
    if (members.some(([name]) => name === 'annals_blob')) attachments += 1
    return Object.fromEntries(members.map(([name, one]) => [name, without(one)]))
  }
  return { entry: without(entry) as NewEntry, attachments }
}
