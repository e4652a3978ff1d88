import { useEffect } from 'react'
import { visible } from '../jsx/jsx-runtime.ts'

/** Names the page in the browser's tab. */
export function usePageTitle(...names: Array<string | undefined>): void {
  const title = [...names, 'Annals'].filter(Boolean).join(' · ')
  useEffect(() => {
    document.title = visible(title)
  }, [title])
}
