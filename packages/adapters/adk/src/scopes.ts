import { escapeJson, type KeyedNewSession, stableId } from '@annals/adapter-kit'
import { State } from '@google/adk'

/** Whose state a name belongs to. Each scope is a session of its own in Annals. */
export interface Scopes {
  app: KeyedNewSession
  user: KeyedNewSession
  session: KeyedNewSession
}

export interface SessionName {
  appName: string
  userId: string
  sessionId: string
}

export function scopesOf({ appName, userId, sessionId }: SessionName): Scopes {
  const user = escapeJson(userId)
  const names = { app_name: appName, user_id: userId, session_id: sessionId }
  return {
    app: {
      use_uuid: stableId('adk/app', appName),
      configs: escapeJson({ adk_app: { app_name: appName } }),
    },
    user: {
      use_uuid: stableId('adk/user', appName, userId),
      user,
      configs: escapeJson({ adk_user: { app_name: appName, user_id: userId } }),
    },
    session: {
      use_uuid: stableId('adk', appName, userId, sessionId),
      user,
      configs: escapeJson({ adk: names }),
    },
  }
}

/** A change of state by scopes, without what is temporary. Names are without their prefixes. */
export function splitState(delta: Record<string, unknown>): Record<keyof Scopes, [string, unknown][]> {
  const split: Record<keyof Scopes, [string, unknown][]> = { app: [], user: [], session: [] }
  for (const [name, value] of Object.entries(delta)) {
    if (name.startsWith(State.TEMP_PREFIX)) continue
    if (name.startsWith(State.APP_PREFIX)) split.app.push([name.slice(State.APP_PREFIX.length), value])
    else if (name.startsWith(State.USER_PREFIX))
      split.user.push([name.slice(State.USER_PREFIX.length), value])
    else split.session.push([name, value])
  }
  return split
}

/** One state of three, as agents see it. */
export function mergeState(states: Record<keyof Scopes, [string, unknown][]>): Record<string, unknown> {
  return Object.fromEntries([
    ...states.session,
    ...states.app.map(([name, value]) => [State.APP_PREFIX + name, value] as const),
    ...states.user.map(([name, value]) => [State.USER_PREFIX + name, value] as const),
  ])
}
