import { isError } from '@annals/adapter-kit'
import type { Annals } from '@annals/client'

/**
 * Waits for an `interrupt` in the chat's inbox, until `over` aborts. It stops this stream if it came after the stream began,
 * or names it in `data.stream_id`; one that names another stream is left to it. An event becomes an entry of the log; a
 * message stays in the inbox, for the next turn. An event that came before the stream began has nothing left to stop, and
 * is withdrawn.
 * @returns whether the stream is to stop
 * @throws AnnalsError if the service refuses
 */
export async function stopRequested(
  annals: Annals,
  session_id: string,
  stream: { id: string; began_at: string },
  over: AbortSignal,
): Promise<boolean> {
  for await (const { event, data } of annals.runs.follow(session_id, { signal: over })) {
    if (event !== 'input' || data.mode !== 'interrupt' || data.state !== 'pending') continue
    const named = data.kind === 'event' ? data.data?.stream_id : undefined
    if (named !== undefined && named !== stream.id) continue
    const isLate = named === undefined && data.created_at < stream.began_at
    if (data.kind === 'event') await takeUp(annals, session_id, data.id, isLate)
    if (!isLate) return true
  }
  return false
}

/** Applies or withdraws an input, unless another reader has. */
async function takeUp(annals: Annals, session_id: string, id: string, isLate: boolean): Promise<void> {
  const taken = isLate
    ? annals.runs.withdraw(session_id, id, 'It came before the stream began.')
    : annals.sessions.appendBatch(session_id, [], { apply: [id] })
  await taken.catch((error: unknown) => {
    if (!isError(error, 'not_pending')) throw error
  })
}
