import { useSyncExternalStore } from 'react'
import { Loading } from '../parts/states.tsx'

/** States: a view's code arrives; or the service is away, and it is asked for again until the service answers. */
let is_away = false
const listeners = new Set<() => void>()
const AGAIN_MS = 1_500
const ANSWER_MS_MAX = 5_000

function tell(away: boolean): void {
  is_away = away
  for (const listener of listeners) listener()
}

/**
 * Loads a view's code, however long the service is away.
 * @throws what the load threw, if the service answers and the code is not there: another version runs now
 */
export async function patiently<Code>(load: () => Promise<Code>): Promise<Code> {
  for (;;) {
    try {
      const code = await load()
      tell(false)
      return code
    } catch (error) {
      const answers = await fetch('/health', { signal: AbortSignal.timeout(ANSWER_MS_MAX) }).then(
        ({ ok }) => ok,
        () => false,
      )
      // It may just have come back.
      if (answers && !is_away) throw error
      tell(!answers)
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
    }
  }
}

/** In place of a view whose code has not arrived. */
export function ViewLoading() {
  const away = useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => is_away,
  )
  if (!away) return <Loading what="the view" />
  return (
    <div className="state" role="status">
      The service does not answer. This view opens as soon as it does.
    </div>
  )
}
