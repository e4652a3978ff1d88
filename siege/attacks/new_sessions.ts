import type { Ground } from '../attackers/ground.ts'
import { dataOf } from '../http.ts'

/** Makes sessions to attack with, as many of the given number as the service lets it. */
export async function newSessions(ground: Ground, count: number): Promise<string[]> {
  const ids: string[] = []
  for (let at = 0; at < count * 2 && ids.length < count && !ground.isOver; at += 1) {
    const { key } = ground.target
    const answer = await ground.ask({ method: 'POST', path: '/api/v1/session', key, body: {} })
    const session = dataOf<{ id: string }>(answer)
    if (session) ids.push(session.id)
  }
  return ids.length > 0 ? ids : [ground.target.long_session]
}
