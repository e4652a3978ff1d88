import { useEffect, useEffectEvent } from 'react'
import { navigate } from '../address/address.ts'

const FIELDS: Record<string, string> = { '/': '[data-search-everywhere]', s: '[data-search]' }
const SECOND_KEY_MS_MAX = 1_200

/** Whether key presses are text input at the moment. */
function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement
  return target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName)
}

/** Calls back for a view's keys, unless the user is typing or a dialog is open. */
export function useKeys(actions: Record<string, (event: KeyboardEvent) => void>): void {
  const press = useEffectEvent((event: KeyboardEvent) => {
    if (isTyping(event) || event.metaKey || event.ctrlKey || event.altKey || event.defaultPrevented) return
    if (document.querySelector('dialog[open]')) return
    const action = actions[event.key]
    if (!action) return
    event.preventDefault()
    action(event)
  })
  useEffect(() => {
    const listener = (event: KeyboardEvent) => press(event)
    addEventListener('keydown', listener)
    return () => removeEventListener('keydown', listener)
  }, [])
}

/** The shortcuts that work everywhere: g and a letter goes to a view, ? helps, / searches all sessions, s goes to the
 * view's own search field. */
export function useShortcuts(views: ReadonlyArray<{ to: string; key: string }>, onHelp: () => void): void {
  const press = useEffectEvent((event: KeyboardEvent, after_g: boolean): boolean => {
    if (isTyping(event) || event.metaKey || event.ctrlKey || event.altKey) return false
    if (document.querySelector('dialog[open]')) return false
    if (after_g) {
      const view = views.find(({ key }) => key === event.key)
      if (view) navigate(view.to)
      return false
    }
    if (event.key === '?') onHelp()
    const wanted = FIELDS[event.key]
    if (wanted) {
      const field = document.querySelector<HTMLInputElement>(wanted)
      if (field) {
        event.preventDefault()
        field.focus()
        field.select()
      }
    }
    return event.key === 'g'
  })
  useEffect(() => {
    let g_until = 0
    const listener = (event: KeyboardEvent) => {
      if (event.key === 'Shift') return
      const after_g = performance.now() < g_until
      if (after_g && !isTyping(event)) event.preventDefault()
      g_until = press(event, after_g) ? performance.now() + SECOND_KEY_MS_MAX : 0
    }
    addEventListener('keydown', listener, true)
    return () => removeEventListener('keydown', listener, true)
  }, [])
}
