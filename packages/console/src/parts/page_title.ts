import { useEffect } from 'react'

/** Names the page in the browser's tab. */
export function usePageTitle(...names: Array<string | undefined>): void {
  const title = [...names, 'Annals'].filter(Boolean).join(' · ')
  useEffect(() => {
    document.title = title
  }, [title])
}
