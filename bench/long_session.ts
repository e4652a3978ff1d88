import type { Service } from './service.ts'
import { callApi, toolCall } from './sessions.ts'

const BATCH = 1_000

/** Fills a session with messages and events in turn, over the API. */
export async function loadLongSession(service: Service, session: string, count: number): Promise<void> {
  const message = (index: number) => ({
    kind: 'message',
    blob: { role: 'user', content: `Message ${index}: where is my flight?` },
    meta: { index },
  })
  const entry = (index: number) => (index % 2 === 0 ? message(index) : { kind: 'event', ...toolCall(index) })
  for (let from = 0; from < count; from += BATCH) {
    const entries = Array.from({ length: Math.min(BATCH, count - from) }, (_, index) => entry(from + index))
    const path = `/api/v1/session/${session}/entries`
    await callApi(service, { method: 'POST', path, body: JSON.stringify({ entries }) })
  }
}
