import { useEffect } from 'react'
import { readAccess } from './service.ts'

const EVERY_MS = 15 * 60_000

/** Extends the console sessions while the page is used; a tab that is merely open lets them end. */
export function useRenewal(is_signed_in: boolean): void {
  useEffect(() => {
    if (!is_signed_in) return
    let renewed_at = performance.now()
    const renew = () => {
      if (performance.now() - renewed_at < EVERY_MS) return
      renewed_at = performance.now()
      // What has ended says so at the next request.
      readAccess().catch(() => {})
    }
    addEventListener('pointerdown', renew)
    addEventListener('keydown', renew)
    return () => {
      removeEventListener('pointerdown', renew)
      removeEventListener('keydown', renew)
    }
  }, [is_signed_in])
}
