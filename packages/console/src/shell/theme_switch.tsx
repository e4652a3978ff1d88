import { useState } from 'react'
import { applyTheme, readTheme, THEMES, type Theme } from './theme.ts'

const NAMES: Record<Theme, string> = { system: 'Same as the system', light: 'Light', dark: 'Dark' }
const MARKS: Record<Theme, string> = { system: '◐', light: '○', dark: '●' }

/** Cycles through: as the system, light, dark. */
export function ThemeSwitch() {
  const [theme, setTheme] = useState(readTheme)
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!
  const change = () => {
    applyTheme(next)
    setTheme(next)
  }
  return (
    <button
      type="button"
      className="button is-quiet"
      onClick={change}
      aria-label={`Theme: ${NAMES[theme]}. Change to ${NAMES[next]}`}
      title={`Theme: ${NAMES[theme]}`}
    >
      {MARKS[theme]}
    </button>
  )
}
