import { randomUUID } from 'node:crypto'
import {
  answersTo,
  askForCalls,
  createSession as createOnce,
  cutIntoBatches,
  escapeJson,
  ifFound,
  isError,
  unescapeJson,
} from '@annals/adapter-kit'
import { type Annals, AnnalsError, type RunnerRequest, type SessionAppend } from '@annals/client'
import {
  type AppendEventRequest,
  BaseSessionService,
  type CreateSessionRequest,
  createSession,
  type DeleteSessionRequest,
  type Event,
  type GetSessionConfig,
  type GetSessionRequest,
  type ListSessionsRequest,
  type ListSessionsResponse,
  type Session,
} from '@google/adk'
import { compactTo } from './compactions.js'
import { answerTo, unanswered } from './long_running.js'
import { type Scopes, type SessionName, scopesOf, splitState } from './scopes.js'
import { readSession, updatedAt } from './session_reader.js'
import { storedEvent, storedState } from './stored_events.js'

export interface AnnalsSessionServiceOptions {
  /** The limit of a body as the service is set, in bytes; default 1 MiB. */
  body_bytes_max?: number | undefined
}

const PAGE_LIMIT = 200

/**
 * Keeps the sessions of the Agent Development Kit in Annals, with the state that the sessions of a user or an app share.
 * An event and all the state that it changes are stored in one transaction.
 */
export class AnnalsSessionService extends BaseSessionService {
  readonly #annals: Annals
  readonly #options: AnnalsSessionServiceOptions
  /** The seq up to which each session object shows its log. */
  readonly #seqs = new WeakMap<Session, number>()
  /** The last append of each session: those of one process do not compete. */
  readonly #queues = new Map<string, Promise<unknown>>()

  constructor(annals: Annals, options: AnnalsSessionServiceOptions = {}) {
    super()
    this.#annals = annals
    this.#options = options
  }

  /** @throws Error if the user has a session with this id */
  async createSession({ appName, userId, state = {}, sessionId }: CreateSessionRequest): Promise<Session> {
    const id = sessionId || randomUUID()
    const name = { appName, userId, sessionId: id }
    const scopes = scopesOf(name)
    try {
      // No other session has this nonce, so a session that exists is not taken for the new one.
      await this.#annals.sessions.create({
        ...scopes.session,
        configs: { ...scopes.session.configs, nonce: randomUUID() },
      })
    } catch (error) {
      if (!isError(error, 'session_exists')) throw error
      throw new Error(`Session with id ${id} already exists.`)
    }
    const appends = stateAppends(scopes, state)
    if (appends.length > 0) await this.#appendTogether(scopes, appends)
    return (await this.getSession(name))!
  }

  async getSession({ config, ...name }: GetSessionRequest): Promise<Session | undefined> {
    const session = createSession({ ...name, id: name.sessionId })
    return (await this.#read(session, config)) ? session : undefined
  }

  async listSessions({
    appName,
    userId,
    limit,
    offset = 0,
    page,
    order,
  }: ListSessionsRequest): Promise<ListSessionsResponse> {
    const filter_by_configs = escapeJson({
      adk: { app_name: appName, ...(userId !== undefined && { user_id: userId }) },
    })
    const sessions: Session[] = []
    for await (const stored of this.#annals.sessions.list({ filter_by_configs, limit: PAGE_LIMIT })) {
      const { app_name, user_id, session_id } = unescapeJson(stored.configs.adk as unknown as AdkConfigs)
      sessions.push(
        createSession({
          appName: app_name,
          userId: user_id,
          id: session_id,
          lastUpdateTime: updatedAt(stored),
        }),
      )
    }
    const sign = order === 'desc' ? -1 : 1
    if (order) sessions.sort((a, b) => sign * (a.lastUpdateTime - b.lastUpdateTime) || (a.id < b.id ? -1 : 1))
    const totalItems = sessions.length
    if (limit === undefined)
      return {
        sessions: sessions.slice(offset),
        page: 1,
        limit: totalItems,
        totalItems,
        totalPages: totalItems && 1,
      }
    const from = page === undefined ? offset : (page - 1) * limit
    return {
      sessions: sessions.slice(from, from + limit),
      page: page ?? (limit === 0 ? 1 : Math.floor(from / limit) + 1),
      limit,
      totalItems,
      totalPages: limit === 0 ? 0 : Math.ceil(totalItems / limit),
    }
  }

  async deleteSession(name: DeleteSessionRequest): Promise<void> {
    await ifFound(this.#annals.sessions.delete(scopesOf(name).session.use_uuid), undefined)
  }

  /** The id of a session in Annals, whose lease keeps a second runner away. */
  sessionId(name: SessionName): string {
    return scopesOf(name).session.use_uuid
  }

  /**
   * Opens a request for each call of a long-running tool, and each that needs a confirmation, which nobody has answered;
   * once, and returns them. Call it when a run has ended.
   */
  async askForApprovals(name: SessionName): Promise<RunnerRequest[]> {
    return (await this.#ask(name)).requests
  }

  /**
   * The message to run the agent with, as soon as all of these are answered, in this process or another; undefined if
   * the session waits for nothing.
   * @throws the signal's reason
   */
  async resume(
    name: SessionName,
    { signal }: { signal?: AbortSignal | undefined } = {},
  ): Promise<NonNullable<Event['content']> | undefined> {
    const { calls, requests } = await this.#ask(name)
    if (calls.length === 0) return undefined
    return answerTo(calls, await answersTo(this.#annals, requests, signal))
  }

  async #ask(name: SessionName) {
    const id = this.sessionId(name)
    const calls = unanswered(id, (await this.getSession(name))?.events ?? [])
    const asked = calls.map((call) => call.asked)
    return { calls, requests: await askForCalls(this.#annals, id, asked) }
  }

  /**
   * Stores an event with the state that it changes. If somebody else has appended since the session was read, the
   * session is read again first, so that it shows what is stored before the event.
   * @throws Error if the session was deleted
   */
  override async appendEvent({ session, event }: AppendEventRequest): Promise<Event> {
    if (event.partial) return event
    const queue = scopesOf(nameOf(session)).session.use_uuid
    const before = this.#queues.get(queue) ?? Promise.resolve()
    const stored = before.catch(() => {}).then(() => this.#store(session, event))
    this.#queues.set(queue, stored)
    try {
      await stored
    } finally {
      if (this.#queues.get(queue) === stored) this.#queues.delete(queue)
    }
    const appended = await super.appendEvent({ session, event })
    session.lastUpdateTime = event.timestamp
    return appended
  }

  async #store(session: Session, event: Event): Promise<void> {
    const scopes = scopesOf(nameOf(session))
    const { use_uuid } = scopes.session
    const delta = event.actions?.stateDelta ?? {}
    const kept = Object.fromEntries(Object.entries(delta).filter(([name]) => !name.startsWith('temp:')))
    const stored = { ...event, ...(event.actions && { actions: { ...event.actions, stateDelta: kept } }) }
    const entries = storedEvent(use_uuid, stored, this.#options.body_bytes_max)
    for (;;) {
      const seq = this.#seqs.get(session)
      try {
        if (seq === undefined)
          throw new AnnalsError({ status: 409, error: 'seq_conflict', message: 'It was never read.' })
        const if_match = await this.#appendParts(use_uuid, entries.slice(0, -1), seq)
        const appends = stateAppends(scopes, kept, entries.at(-1))
        const own = appends.find(({ session_id }) => session_id === use_uuid)!
        own.if_match = if_match
        const answer = await this.#appendTogether(scopes, appends)
        const { items } = answer.appends.find(({ session_id }) => session_id === use_uuid)!
        this.#seqs.set(session, Math.max(if_match, ...items.map(({ seq }) => seq)))
        break
      } catch (error) {
        if (!isError(error, 'seq_conflict')) throw error
        if (!(await this.#read(session))) throw new Error(`Session ${session.id} not found for appendEvent`)
      }
    }
    await compactTo(this.#annals, use_uuid, event, session.events)
  }

  /** Appends the parts of a large event, and returns the seq after them. */
  async #appendParts(
    session_id: string,
    parts: Parameters<typeof cutIntoBatches>[0],
    seq: number,
  ): Promise<number> {
    let if_match = seq
    for (const batch of cutIntoBatches(parts, this.#options.body_bytes_max)) {
      const { items } = await this.#annals.sessions.appendBatch(session_id, batch, { if_match })
      if_match = Math.max(if_match, ...items.map((item) => item.seq))
    }
    return if_match
  }

  /** The sessions of app and user are created by the first state that they get. */
  async #appendTogether(scopes: Scopes, appends: SessionAppend[]) {
    try {
      return await this.#annals.sessions.appendToSessions(appends)
    } catch (error) {
      if (!isError(error, 'session_not_found')) throw error
    }
    for (const scope of [scopes.app, scopes.user]) await createOnce(this.#annals, scope)
    try {
      return await this.#annals.sessions.appendToSessions(appends)
    } catch (error) {
      if (!isError(error, 'session_not_found')) throw error
      throw new Error('The session was deleted: it was not found for appendEvent.')
    }
  }

  /** Makes a session object show what is stored; false if there is no such session. */
  async #read(session: Session, config?: GetSessionConfig): Promise<boolean> {
    const stored = await readSession(this.#annals, nameOf(session), config)
    if (!stored) return false
    const { seq, ...shown } = stored
    Object.assign(session, shown)
    this.#seqs.set(session, seq)
    return true
  }
}

interface AdkConfigs {
  app_name: string
  user_id: string
  session_id: string
}

/** What stores a change of state, and an event with it if there is one. */
function stateAppends(
  scopes: Scopes,
  delta: Record<string, unknown>,
  event?: NonNullable<SessionAppend['entries']>[number],
): SessionAppend[] {
  const split = splitState(delta)
  return (['session', 'app', 'user'] as const).flatMap((scope) => {
    const entries = split[scope].map(([name, value]) => storedState(name, value))
    if (scope === 'session' && event) entries.unshift(event)
    return entries.length > 0 ? [{ session_id: scopes[scope].use_uuid, entries }] : []
  })
}

function nameOf({ appName, userId, id }: Session): SessionName {
  return { appName, userId, sessionId: id }
}
