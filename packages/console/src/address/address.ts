import { useMemo, useSyncExternalStore } from 'react'

/** A view's whole state is in the address: its path below /console, and its query. */
export interface Address {
  path: string
  query: URLSearchParams
}

const BASE = '/console'
const MOVED = 'annals:moved'

/** The current address; the component renders again when it changes. */
export function useAddress(): Address {
  const text = useSyncExternalStore(listen, () => location.pathname + location.search)
  return useMemo(() => {
    const { pathname, searchParams } = new URL(text, location.origin)
    return { path: pathname.slice(BASE.length) || '/', query: searchParams }
  }, [text])
}

/** The current path below /console. */
export function pathHere(): string {
  return location.pathname.slice(BASE.length) || '/'
}

/** Navigates to a path below /console, with its query. `replace` adds no history entry. */
export function navigate(to: string, { replace = false } = {}): void {
  if (BASE + to === location.pathname + location.search) return
  history[replace ? 'replaceState' : 'pushState'](null, '', BASE + to)
  dispatchEvent(new Event(MOVED))
}

/** The full path of a link. */
export function hrefOf(to: string): string {
  return BASE + to
}

/** A path with a query of the parameters that are neither undefined nor empty. */
export function withQuery(path: string, query: Record<string, string | undefined>): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value) parameters.set(name, value)
  const text = parameters.toString()
  return text ? `${path}?${text}` : path
}

function listen(onChange: () => void): () => void {
  addEventListener('popstate', onChange)
  addEventListener(MOVED, onChange)
  return () => {
    removeEventListener('popstate', onChange)
    removeEventListener(MOVED, onChange)
  }
}
