import { readByIds } from '@annals/adapter-kit'
import type { Annals, TimelineItem } from '@annals/client'
import type { SessionStoreEntry } from '@anthropic-ai/claude-agent-sdk'
import { compact, keptBy } from './compactions.js'
import { idOfUuid, transcriptEntry } from './transcript_entries.js'

const PAGE_LIMIT = 1_000
/** Lines that are read at once to find the one ahead of a prompt. */
const NEAR_LIMIT = 50
/** Most messages of a branch that a compaction shows whole, in addition to its first. */
const SHOWN_MAX = 200

interface Line {
  entry: SessionStoreEntry
  item: TimelineItem
}

/**
 * Has contexts follow the tree of a transcript. A prompt that was rewound, and what followed it, stay in the log; once the
 * user has said something else in its place, a compaction stands for all up to there, and shows the messages of the branch.
 * A branch that is too long for that, or of which a line is missing, leaves contexts as they were.
 */
export async function followBranch(
  annals: Annals,
  session_id: string,
  entries: readonly SessionStoreEntry[],
): Promise<void> {
  for (const [at, entry] of entries.entries()) {
    if (!isPrompt(entry)) continue
    const before = entries.slice(0, at).findLast(isOfTree)
    if (before && before.uuid === entry.parentUuid) continue
    const [stored] = await readByIds(annals, session_id, [idOfUuid(session_id, entry.uuid!)])
    if (stored?.kind !== 'message') continue
    if (!before && (await followsNewest(annals, session_id, entry, stored.seq))) continue
    await showBranch(annals, session_id, entry, stored)
  }
}

/** Whether a prompt follows the line that was the newest before it, as nearly all do. */
async function followsNewest(annals: Annals, session_id: string, entry: SessionStoreEntry, seq: number) {
  const newest = annals.sessions.timeline(session_id, { time_desc: true, limit: NEAR_LIMIT })
  for await (const item of newest) {
    if (item.seq >= seq) continue
    const line = await transcriptEntry(annals, session_id, item)
    if (line && isOfTree(line)) return line.uuid === entry.parentUuid
  }
  return entry.parentUuid === null
}

async function showBranch(
  annals: Annals,
  session_id: string,
  prompt: SessionStoreEntry,
  { seq, id }: TimelineItem,
): Promise<void> {
  const lines: Line[] = []
  for await (const item of annals.sessions.timeline(session_id, { limit: PAGE_LIMIT })) {
    if (item.seq > seq) break
    const entry = await transcriptEntry(annals, session_id, item)
    if (entry && isOfTree(entry)) lines.push({ entry, item })
  }
  const branch = branchOf(prompt, lines)
  if (!branch) return
  const root = lines.find(({ entry }) => branch.has(entry.uuid!))!
  const isSummary = root.entry.isCompactSummary === true
  const boundary = lines.findLast(
    ({ entry, item }) => entry.subtype === 'compact_boundary' && item.seq < root.item.seq,
  )
  const kept = new Set<unknown>(isSummary ? keptBy(boundary?.entry) : [])
  const said = lines.filter(
    ({ item, entry }) =>
      item.kind === 'message' && (!isSummary || item.seq >= root.item.seq || kept.has(entry.uuid)),
  )
  const isShown = isOnBranch(branch, said)
  const shown = said.filter(({ entry }) => isShown(entry) || kept.has(entry.uuid))
  if (shown.length === said.length || shown.length - 1 > SHOWN_MAX) return
  const first = shown.find(({ item }) => item === root.item) ?? shown[0]
  const others = shown.filter((line) => line !== first)
  const compaction = {
    to_seq: seq,
    summary: first!.entry.message,
    except: others.map(({ item }) => item.id),
  }
  await compact(annals, session_id, compaction, `claude/branch/${id}`)
}

/** The lines from a prompt back to the first one, or to a summary; undefined where one is missing. */
function branchOf(prompt: SessionStoreEntry, lines: readonly Line[]): Set<string> | undefined {
  const byUuid = new Map(lines.map(({ entry }) => [entry.uuid!, entry]))
  const branch = new Set<string>()
  for (let line: SessionStoreEntry | undefined = prompt; ; line = byUuid.get(line.parentUuid as string)) {
    if (line === undefined || branch.has(line.uuid!)) return undefined
    branch.add(line.uuid!)
    if (line.isCompactSummary === true || line.parentUuid == null) return branch
  }
}

/** Of parallel calls, each is a line, and so is each result: only one of them leads to what follows, but all are said. */
function isOnBranch(
  branch: ReadonlySet<string>,
  said: readonly Line[],
): (entry: SessionStoreEntry) => boolean {
  const answers = new Set<unknown>()
  const calls = new Set<unknown>()
  const blocksOf = (entry: SessionStoreEntry) => {
    const { content } = entry.message as { content?: unknown }
    return Array.isArray(content) ? (content as Array<Record<string, unknown>>) : []
  }
  const answerOf = (entry: SessionStoreEntry) => (entry.message as { id?: unknown }).id
  for (const { entry } of said)
    if (branch.has(entry.uuid!) && answerOf(entry) !== undefined) answers.add(answerOf(entry))
  const isSaid = (entry: SessionStoreEntry) => branch.has(entry.uuid!) || answers.has(answerOf(entry))
  for (const { entry } of said)
    if (isSaid(entry)) for (const { type, id } of blocksOf(entry)) if (type === 'tool_use') calls.add(id)
  return (entry) =>
    isSaid(entry) ||
    blocksOf(entry).some(({ type, tool_use_id }) => type === 'tool_result' && calls.has(tool_use_id))
}

/** A line that others follow, of the main conversation. */
function isOfTree({ uuid, parentUuid, isSidechain }: SessionStoreEntry): boolean {
  return uuid !== undefined && parentUuid !== undefined && isSidechain !== true
}

/** What the user said by themselves. */
function isPrompt(entry: SessionStoreEntry): boolean {
  if (entry.type !== 'user' || !isOfTree(entry) || entry.isMeta === true || entry.isCompactSummary === true)
    return false
  const { content } = (entry.message ?? {}) as { content?: unknown }
  return !(Array.isArray(content) && content.some((block) => block?.type === 'tool_result'))
}
