import type { AnchorHTMLAttributes, MouseEvent } from 'react'
import { hrefOf, navigate } from './address.ts'

/** A link to a view of the console. With a modifier key it does what the browser's links do. */
export function Link({ to, ...rest }: { to: string } & AnchorHTMLAttributes<HTMLAnchorElement>) {
  const follow = (event: MouseEvent) => {
    if (event.defaultPrevented || event.button !== 0) return
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    navigate(to)
  }
  return <a {...rest} href={hrefOf(to)} onClick={follow} />
}
