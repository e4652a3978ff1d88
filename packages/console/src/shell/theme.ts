export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

const KEY = 'annals.theme'

/** The reader's choice in this browser. */
export function readTheme(): Theme {
  const kept = localStorage.getItem(KEY)
  return THEMES.find((theme) => theme === kept) ?? 'system'
}

/** Applies and stores a theme. */
export function applyTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme)
  document.documentElement.dataset.theme = theme
  // Charts are drawn on a canvas, which does not follow the style sheet by itself.
  dispatchEvent(new Event('annals:theme'))
}
