import type { ApiClient, Page, SessionEvent } from './api_client.ts'
import type { Answer, Query, RequestOptions } from './http_client.ts'

export interface Message {
  id: string
  session_id: string
  parent_id: string | null
  role: string
  meta: Record<string, unknown>
  parts: Array<Record<string, unknown>>
  task_id: null
  session_task_process_status: string
  created_at: string
  updated_at: string
  seq: number
}

export interface MessagePage {
  items: Array<Record<string, unknown>>
  ids: string[]
  metas: Array<Record<string, unknown>>
  has_more: boolean
  next_cursor: string
  edit_at_message_id: string
  this_time_tokens: number
  events?: SessionEvent[]
}

export type TimelineItem = Record<string, unknown> & { kind: 'message' | 'event'; id: string; seq: number }

/** The calls on one session's log, each as it would be sent. Nothing is checked here. */
export function sessionLog(api: ApiClient, sessionId: string) {
  const path = `/api/v1/session/${sessionId}`
  return {
    id: sessionId,
    add: (blob: unknown, more: Record<string, unknown> = {}, options: RequestOptions = {}) =>
      api.request<Message>('POST', `${path}/messages`, { body: { blob, ...more }, ...options }),
    addEvent: (type = 'note', data: unknown = {}) => api.appendEvent(sessionId, { type, data }),
    list: (query?: Query) => api.request<MessagePage>('GET', `${path}/messages`, { query }),
    patchMeta: (messageId: string, meta: unknown) =>
      api.request<{ meta: Record<string, unknown> }>('PATCH', `${path}/messages/${messageId}/meta`, {
        body: { meta },
      }),
    tokens: () => api.request<{ total_tokens: number }>('GET', `${path}/token_counts`),
    timeline: (query?: Query) => api.request<Page<TimelineItem>>('GET', `${path}/timeline`, { query }),
    batch: (entries: unknown, options: RequestOptions = {}) =>
      api.request<{ items: TimelineItem[] }>('POST', `${path}/entries`, { body: { entries }, ...options }),
    copy: (options: RequestOptions = {}) =>
      api.request<{ old_session_id: string; new_session_id: string }>('POST', `${path}/copy`, options),
  }
}

export type SessionLog = ReturnType<typeof sessionLog>

/** The log of a session made for the occasion. */
export async function newSessionLog(api: ApiClient, body: unknown = {}): Promise<SessionLog> {
  const answer = await api.createSession(body)
  if (answer.status !== 201) throw new Error(answer.text)
  return sessionLog(api, answer.json.data.id)
}

/** Every page of a walk, in the order of the walk. */
export async function walkMessages(log: SessionLog, query: Query): Promise<MessagePage[]> {
  const pages: MessagePage[] = []
  let cursor: string | undefined
  do {
    const answer: Answer<MessagePage> = await log.list({ ...query, cursor })
    if (answer.status !== 200) throw new Error(answer.text)
    const page = answer.json.data
    pages.push(page)
    cursor = page.has_more ? page.next_cursor : undefined
    if (pages.length > 2_000) throw new Error('The walk does not end')
  } while (cursor !== undefined)
  return pages
}

/** `count` entries of a batch, two events after each message. */
export function mixedEntries(count: number, name = 'n') {
  return Array.from({ length: count }, (_, index) =>
    index % 3 === 0
      ? { kind: 'message', blob: { role: 'user', content: `${name} ${index}` }, meta: { [name]: index } }
      : { kind: 'event', type: `type-${index % 3}`, data: { [name]: index } },
  )
}
