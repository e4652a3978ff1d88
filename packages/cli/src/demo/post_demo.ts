import { type Annals, AnnalsError } from '@annals/client'
import type { Progress } from '../terminal/progress.js'
import type { DemoDocument, DemoSession, DemoTotals } from './demo_document.js'

/** Loads the demo through the API. The service dates everything now. */
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
async function postSession(
  annals: Annals,
  { session, entries }: DemoSession,
  signal: AbortSignal,
): Promise<boolean> {
  const is_new = await isMissing(annals, session.use_uuid, signal)
  if (is_new) await annals.sessions.create(session, { signal })
  await annals.sessions.appendBatch(session.use_uuid, entries, { signal })
  return is_new
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
