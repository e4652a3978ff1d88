import { type Annals, AnnalsError } from '@annals/client'
import type { Progress } from '../terminal/progress.js'
import { type DemoDocument, type DemoSession, type DemoTotals, startOf, timeOf } from './demo_document.js'

/** Loads the demo through the API. Entries say when they happened; what the service stores, it dates now. */
export async function postDemo(
  annals: Annals,
  { sessions, learning_spaces }: DemoDocument,
  signal: AbortSignal,
  progress: Progress,
): Promise<DemoTotals> {
  const totals = { sessions: { stored: 0, known: 0 }, entries: 0, spaces: 0 }
  let done = 0
  // Oldest first, so that lists have the intended order.
  for (const session of sessions) {
    const is_new = await postSession(annals, session, signal)
    totals.sessions[is_new ? 'stored' : 'known'] += 1
    if (is_new) totals.entries += session.entries.length
    done += session.entries.length
    progress.update(done, 0)
  }
  for (const { user, meta, learns_from } of learning_spaces) {
    const filter_by_meta = { demo: meta.demo }
    const { items } = await annals.learningSpaces.list({ filter_by_meta, limit: 1 }, { signal }).page()
    const space = items[0] ?? (await annals.learningSpaces.create({ user, meta }, { signal }))
    if (items.length === 0) totals.spaces += 1
    for (const session_id of learns_from)
      await annals.learningSpaces.learn(space.id, session_id, { signal }).catch(unless('session_in_space'))
  }
  return totals
}

/** Returns whether the session is new. A partly loaded one is completed: entries are recognized by their ids. */
async function postSession(annals: Annals, demo: DemoSession, signal: AbortSignal): Promise<boolean> {
  const { session, entries, at_ms, hours_ago } = demo
  const is_new = await isMissing(annals, session.use_uuid, signal)
  if (is_new) await annals.sessions.create(session, { signal })
  const [first] = is_new
    ? []
    : (await annals.sessions.timeline(session.use_uuid, { limit: 1 }, { signal }).page()).items
  // Sessions that are stored already keep their times.
  const begun = first ? beginOf(first.occurred_at, at_ms) : startOf(hours_ago, Date.now())
  const dated = entries.map((entry, index) =>
    begun === undefined ? entry : { ...entry, occurred_at: timeOf(begun + (at_ms[index] ?? 0)) },
  )
  await annals.sessions.appendBatch(session.use_uuid, dated, { signal })
  return is_new
}

/** When a session began, by its first entry; undefined if that does not say when it happened. */
function beginOf(occurred_at: string | null | undefined, [first_ms = 0]: number[]): number | undefined {
  return occurred_at == null ? undefined : Date.parse(occurred_at) - first_ms
}

/** Whether entries can be searched. */
export async function isSearchOn(annals: Annals, signal: AbortSignal): Promise<boolean> {
  try {
    await annals.search('refund', { limit: 1 }, { signal }).page()
    return true
  } catch (error) {
    if (error instanceof AnnalsError && error.error === 'search_off') return false
    throw error
  }
}

/** Takes one error for a success. */
function unless(name: string): (error: unknown) => void {
  return (error) => {
    if (!(error instanceof AnnalsError) || error.error !== name) throw error
  }
}

async function isMissing(annals: Annals, session_id: string, signal: AbortSignal): Promise<boolean> {
  try {
    await annals.sessions.get(session_id, { signal })
    return false
  } catch (error) {
    if (error instanceof AnnalsError && error.error === 'session_not_found') return true
    throw error
  }
}
