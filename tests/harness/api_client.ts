import { type Answer, type HttpClient, httpClient, type Query, type RequestOptions } from './http_client.ts'

export interface Session {
  id: string
  project_id: string
  user_id: string | null
  configs: Record<string, unknown>
  disable_task_tracking: boolean
  created_at: string
  updated_at: string
}

export interface SessionEvent {
  id: string
  project_id: string
  session_id: string
  type: string
  data: Record<string, unknown>
  seq: number
  created_at: string
  updated_at: string
}

export interface LearningSpace {
  id: string
  user_id: string | null
  meta: Record<string, unknown>
  created_at: string
  updated_at: string
}

export interface Page<T> {
  items: T[]
  has_more: boolean
  next_cursor: string
}

/** What a caller of the service does, one method an operation. Nothing is checked here: tests do that. */
export interface ApiClient extends HttpClient {
  createSession(body?: unknown, options?: RequestOptions): Promise<Answer<Session>>
  getSession(id: string): Promise<Answer<Session>>
  deleteSession(id: string): Promise<Answer>
  listSessions(query?: Query): Promise<Answer<Page<Session>>>
  appendEvent(sessionId: string, body: unknown, options?: RequestOptions): Promise<Answer<SessionEvent>>
  listEvents(sessionId: string, query?: Query): Promise<Answer<Page<SessionEvent>>>
  createLearningSpace(body?: unknown, options?: RequestOptions): Promise<Answer<LearningSpace>>
  getLearningSpace(id: string): Promise<Answer<LearningSpace>>
}

export function apiClient(url: string, token: string): ApiClient {
  const http = httpClient(url, token)
  return {
    ...http,
    createSession: (body, options) => http.request('POST', '/api/v1/session', { body, ...options }),
    getSession: (id) => http.request('GET', `/api/v1/session/${id}`),
    deleteSession: (id) => http.request('DELETE', `/api/v1/session/${id}`),
    listSessions: (query) => http.request('GET', '/api/v1/session', { query }),
    appendEvent: (sessionId, body, options) =>
      http.request('POST', `/api/v1/session/${sessionId}/events`, { body, ...options }),
    listEvents: (sessionId, query) => http.request('GET', `/api/v1/session/${sessionId}/events`, { query }),
    createLearningSpace: (body, options) =>
      http.request('POST', '/api/v1/learning_spaces', { body, ...options }),
    getLearningSpace: (id) => http.request('GET', `/api/v1/learning_spaces/${id}`),
  }
}
