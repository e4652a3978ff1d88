import type { Journal, SentAppend, SentFork, SentRetraction } from './journal.ts'

/** An entry as the database has it. */
export interface StoredEntry {
  seq: number
  id: string
  marker: string
  /** Microseconds since 1970. */
  created_at: number
  tokens: number
  is_message: boolean
  is_retraction: boolean
  /** The seq of the retraction that named it. */
  retracted_by: number | null
  /** Of a runner's write: the fence under which it was sent. */
  fence?: number
}

/** A session as the database has it, its entries in the order of seq. */
export interface StoredSession {
  project_id: string
  session_id: string
  marker: string
  /** What the last append that changed its configs merged into them. */
  touched?: string | undefined
  head: { last_seq: number; total_tokens: number; updated_at: number; last_message_id: string | null }
  entries: StoredEntry[]
}

/** What the comparison found: a sentence for each. Nothing in any of them is a run that held. */
export interface Findings {
  /** Acknowledged, or shown to a reader, and not there. */
  lost: string[]
  /** There more than once, or shown more than once. */
  duplicated: string[]
  /** Not where it was acknowledged or read, or out of the order of time. */
  reordered: string[]
  /** There although nobody sent it, or although its sender was told that it is not. */
  unasked: string[]
  /** The log contradicts itself: a gap, a time that goes back, a head that disagrees. */
  broken: string[]
}

/** Compares all records with the database. */
export function compare(journal: Journal, stored: StoredSession[]): Findings {
  const findings: Findings = {
    lost: [...journal.lost],
    duplicated: [...journal.duplicated],
    reordered: [...journal.reordered],
    unasked: [],
    broken: [],
  }
  const sessions = new Map(stored.map((session) => [session.session_id, session]))
  compareSessions(journal, stored, sessions, findings)
  compareRetractions(journal, sessions, findings)
  compareForks(journal, sessions, findings)
  const written = withoutForks(journal, stored)
  const places = placesByMarker(written, findings)
  const senders = new Map(
    journal.appends.flatMap((append) => append.markers.map((marker) => [marker, append])),
  )
  for (const append of journal.appends) compareAppend(append, places, findings)
  for (const { session_id, markers } of journal.inputs)
    for (const marker of markers)
      if (!places.has(marker)) findings.lost.push(`${marker} was taken for ${session_id} and is nowhere`)
  for (const session of stored) {
    checkLog(session, findings)
    checkFences(session, findings)
    checkHead(session, findings)
  }
  for (const session of written) {
    checkOrderOfTime(session, senders, findings)
    checkConfigs(session, senders, findings)
    for (const { marker, seq } of session.entries) {
      if (!senders.has(marker))
        findings.unasked.push(`nobody sent ${marker}, which is at ${session.session_id}/${seq}`)
    }
  }
  compareSightings(journal, sessions, findings)
  return findings
}

type Placed = StoredEntry & { session_id: string }

function placesByMarker(stored: StoredSession[], findings: Findings): Map<string, Placed> {
  const places = new Map<string, Placed>()
  for (const { session_id, entries } of stored) {
    for (const entry of entries) {
      const other = places.get(entry.marker)
      if (other) {
        findings.duplicated.push(
          `${entry.marker} is at ${other.session_id}/${other.seq} and at ${session_id}/${entry.seq}`,
        )
      } else places.set(entry.marker, { ...entry, session_id })
    }
  }
  return places
}

function compareSessions(
  journal: Journal,
  stored: StoredSession[],
  byId: Map<string, StoredSession>,
  findings: Findings,
): void {
  const known = new Map(journal.sessions.map((session) => [session.marker, session]))
  const seen = new Set<string>()
  for (const { marker, session_id } of stored) {
    const sent = known.get(marker)
    if (!sent || sent.fate === 'refused')
      findings.unasked.push(`nobody has session ${session_id} (${marker})`)
    if (seen.has(marker)) findings.duplicated.push(`session ${marker} was created twice`)
    seen.add(marker)
  }
  for (const { marker, fate, session_id } of journal.sessions) {
    if (fate === 'acknowledged' && byId.get(session_id!)?.marker !== marker)
      findings.lost.push(`session ${session_id} (${marker}) was acknowledged and is not there`)
  }
}

function compareAppend(append: SentAppend, places: Map<string, Placed>, findings: Findings): void {
  const markers = (append.together ?? [append]).flatMap((part) => part.markers)
  const there = markers.filter((marker) => places.has(marker))
  if (append.fate === 'refused' && there.length > 0)
    findings.unasked.push(`${there.join(', ')} was refused and is there`)
  if (there.length > 0 && there.length < markers.length)
    findings.lost.push(`of the batch ${markers.join(', ')} only ${there.join(', ')} is there`)
  append.markers.forEach((marker, index) => {
    const at = places.get(marker)
    const told = append.places?.[index]
    if (!told) return
    const where = `${append.session_id}/${told.seq}`
    if (!at) findings.lost.push(`${marker} was acknowledged at ${where} and is nowhere`)
    else if (at.seq !== told.seq || at.id !== told.id || at.session_id !== append.session_id)
      findings.reordered.push(`${marker} was acknowledged at ${where} and is at ${at.session_id}/${at.seq}`)
    const first = places.get(append.markers[0]!)
    if (at && first && at.seq !== first.seq + index)
      findings.reordered.push(`${marker} does not follow its batch, which begins at seq ${first.seq}`)
  })
}

/** Configs are merged in the transaction of the entries, or not at all. */
function checkConfigs(
  { session_id, touched, entries }: StoredSession,
  senders: Map<string, SentAppend>,
  findings: Findings,
): void {
  const last = entries.findLast(({ marker }) => senders.get(marker)?.touches !== undefined)
  const due = last && senders.get(last.marker)!.touches
  if (touched !== due)
    findings.broken.push(`the configs of ${session_id} were touched by ${touched}, and its entries by ${due}`)
}

/** Seqs are 1, 2, 3, … and times never go back along them. */
function checkLog({ session_id, entries }: StoredSession, findings: Findings): void {
  entries.forEach((entry, index) => {
    if (entry.seq !== index + 1)
      findings.broken.push(`${session_id} has seq ${entry.seq} where ${index + 1} should be`)
    const before = entries[index - 1]
    if (before && before.created_at > entry.created_at)
      findings.broken.push(`${session_id}/${entry.seq} has an earlier created_at than the entry before it`)
  })
}

/** A fence only grows: what was written under it is one run of the log, and nothing comes late. */
function checkFences({ session_id, entries }: StoredSession, findings: Findings): void {
  let newest = 0
  for (const { seq, fence = newest } of entries) {
    if (fence < newest)
      findings.broken.push(`${session_id}/${seq} was written under ${fence}, after ${newest}`)
    newest = fence
  }
}

function checkHead({ session_id, head, entries }: StoredSession, findings: Findings): void {
  const disagree = (what: string) => findings.broken.push(`the head of ${session_id} disagrees on ${what}`)
  if (head.last_seq !== (entries.at(-1)?.seq ?? 0)) disagree('last_seq')
  const live = entries.filter(({ retracted_by }) => retracted_by === null)
  if (head.total_tokens !== live.reduce((sum, { tokens }) => sum + tokens, 0)) disagree('total_tokens')
  if (head.updated_at < (entries.at(-1)?.created_at ?? 0)) disagree('updated_at')
  const lastMessage = entries.findLast(({ is_message }) => is_message)
  if (head.last_message_id !== (lastMessage?.id ?? null)) disagree('last_message_id')
}

/** What was acknowledged before another request was first sent stands before it. */
function checkOrderOfTime(
  { session_id, entries }: StoredSession,
  senders: Map<string, SentAppend>,
  findings: Findings,
): void {
  let answeredFirst: { at: number; marker: string } | undefined
  for (const { marker } of entries.toReversed()) {
    const append = senders.get(marker)
    if (!append) continue
    if (answeredFirst && answeredFirst.at < append.first_sent_at) {
      findings.reordered.push(
        `${answeredFirst.marker} of ${session_id} was acknowledged before ${marker} was sent and stands behind it`,
      )
    }
    if (append.answered_at !== undefined && append.answered_at < (answeredFirst?.at ?? Infinity))
      answeredFirst = { at: append.answered_at, marker }
  }
}

function compareSightings(journal: Journal, sessions: Map<string, StoredSession>, findings: Findings): void {
  for (const [session_id, seen] of journal.sightings) {
    const entries = sessions.get(session_id)?.entries ?? []
    for (const { seq, id, marker } of seen.values()) {
      const entry = entries[seq - 1]
      if (!entry) findings.lost.push(`${marker} was read at ${session_id}/${seq}, where nothing is`)
      else if (entry.id !== id || entry.marker !== marker)
        findings.reordered.push(`${marker} was read at ${session_id}/${seq}, where ${entry.marker} is`)
    }
  }
}

/** Compares what retractions were answered with the marks of entries: no entry is retracted twice, nor another one. */
function compareRetractions(
  { retractions }: Journal,
  sessions: Map<string, StoredSession>,
  findings: Findings,
): void {
  for (const retraction of retractions) {
    const { session_id, seq, seqs } = retraction
    const entries = sessions.get(session_id)?.entries ?? []
    const marked = entries.filter(({ retracted_by }) => retracted_by === seq).map((entry) => entry.seq)
    const due = seqsDue(retraction, entries)
    const told = seqs.toSorted((a, b) => a - b).join(', ')
    if (marked.join(', ') !== told)
      findings.reordered.push(`${session_id}/${seq} retracted ${told}, and ${marked.join(', ')} are marked`)
    if (due.join(', ') !== told)
      findings.reordered.push(`${session_id}/${seq} retracted ${told} where ${due.join(', ')} was due`)
  }
}

/** What a retraction had to find at its place in the log. */
function seqsDue({ seq, asked }: SentRetraction, entries: StoredEntry[]): number[] {
  const live = entries.filter(
    (entry) =>
      entry.seq < seq &&
      !entry.is_retraction &&
      (entry.retracted_by === null || entry.retracted_by >= seq) &&
      (asked.kind === undefined || entry.is_message),
  )
  const due =
    asked.last === undefined ? live.filter((entry) => entry.seq > asked.after_seq!) : live.slice(-asked.last)
  return due.map((entry) => entry.seq)
}

/** A fork has what its original has up to its seq, and nothing else. */
function compareForks({ forks }: Journal, sessions: Map<string, StoredSession>, findings: Findings): void {
  for (const { session_id, of, up_to_seq } of forks) {
    const fork = sessions.get(session_id)?.entries ?? []
    const original = sessions.get(of)?.entries.slice(0, up_to_seq) ?? []
    const differs = original.findIndex((entry, index) => !isCopy(fork[index], entry, up_to_seq))
    if (differs >= 0) findings.lost.push(`the fork ${session_id} of ${of} differs at seq ${differs + 1}`)
    if (fork.length > up_to_seq)
      findings.unasked.push(`the fork ${session_id} of ${of} goes beyond ${up_to_seq}`)
  }
}

function isCopy(copy: StoredEntry | undefined, entry: StoredEntry, up_to_seq: number): boolean {
  const mark = entry.retracted_by !== null && entry.retracted_by <= up_to_seq ? entry.retracted_by : null
  return (
    copy !== undefined &&
    copy.created_at === entry.created_at &&
    copy.retracted_by === mark &&
    (entry.is_retraction ? copy.is_retraction : copy.marker === entry.marker)
  )
}

/** The sessions that are no forks: what these have was sent to others. */
function withoutForks({ forks }: Journal, stored: StoredSession[]): StoredSession[] {
  const ids = new Set(forks.map(({ session_id }: SentFork) => session_id))
  return stored.filter(({ session_id }) => !ids.has(session_id))
}
