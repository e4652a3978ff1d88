import type { Annals, NewInput, Resolution } from '@annals/client'
import {
  createContext,
  createElement,
  type ReactNode,
  useContext,
  useEffect,
  useMemo,
  useSyncExternalStore,
} from 'react'
import { LiveSession, type LiveState, NOTHING } from './live_session.js'

const Client = createContext<Annals | undefined>(undefined)

/** Provides the client for the hooks below: one for the whole page, with `renew`. */
export function AnnalsProvider({ annals, children }: { annals: Annals; children?: ReactNode }) {
  return createElement(Client.Provider, { value: annals }, children)
}

/** The sessions that are in use, so that all hooks of a session show the same. */
const live = new WeakMap<Annals, Map<string, LiveSession>>()

function sessionsOf(annals: Annals): Map<string, LiveSession> {
  const sessions = live.get(annals) ?? new Map<string, LiveSession>()
  live.set(annals, sessions)
  return sessions
}

function liveSession(annals: Annals, session_id: string, last: number | undefined): LiveSession {
  const sessions = sessionsOf(annals)
  const session = sessions.get(session_id) ?? new LiveSession(annals, session_id, last)
  sessions.set(session_id, session)
  return session
}

type Part = keyof LiveSession['parts']
const nothing = () => NOTHING

function useLive(session_id: string, parts: Part[], last?: number): [LiveSession, LiveState, Annals] {
  const annals = useContext(Client)
  if (!annals) throw new Error('There is no <AnnalsProvider annals={…}> above this component.')
  const session = useMemo(() => liveSession(annals, session_id, last), [annals, session_id, last])
  const state = useSyncExternalStore(session.subscribe, session.state, nothing)
  const named = parts.join(' ')
  useEffect(() => {
    const sessions = sessionsOf(annals)
    sessions.set(session_id, session)
    const leaves = named.split(' ').map((part) => session.parts[part as Part]?.use())
    session.components += 1
    return () => {
      for (const leave of leaves) leave?.()
      session.components -= 1
      if (session.components === 0 && !session.isSending) sessions.delete(session_id)
    }
  }, [annals, session_id, session, named])
  return [session, state, annals]
}

/** A session with its configs, read again when the page wakes. */
export function useSession(session_id: string) {
  const [live, { session, error }] = useLive(session_id, ['session'])
  return { session, error, reload: () => live.parts.session.restart() }
}

/**
 * The newest entries of a session's log and each new one as it is stored: in order, each once, across broken
 * connections, sleep, and tokens that expire.
 */
export function useTimeline(session_id: string, { last }: { last?: number } = {}) {
  const [live, { entries, has_earlier, status, error }] = useLive(session_id, ['log'], last)
  return { entries, has_earlier, status, error, loadEarlier: live.loadEarlier }
}

/**
 * Appends to a session. `pending` are the entries that the timeline does not have yet: in the render in which one is
 * among `entries`, it is not among `pending`.
 */
export function useAppend(session_id: string) {
  const [{ append, retry, discard }, { pending }] = useLive(session_id, [])
  return { append, pending, retry, discard }
}

/** What waits for a session's runner, and what its runner waits for. */
export function useInbox(session_id: string) {
  const [, { inputs, requests, lease, status, error }, { runs }] = useLive(session_id, ['log', 'run'])
  return {
    /** Pending input, in order. */
    inputs,
    /** Open requests, in order. */
    requests,
    lease,
    status,
    error,
    send: (input: NewInput) => runs.send(session_id, input),
    withdraw: (input_id: string, reason?: string) => runs.withdraw(session_id, input_id, reason),
    resolve: (request_id: string, resolution: Resolution) => runs.resolve(request_id, resolution),
  }
}
