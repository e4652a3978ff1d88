import { endOfString } from './end_of_string.js'

/**
 * Most levels of nesting of a JSON text. PostgreSQL's own limit depends on its stack size (about 6,000 levels with
 * the default 2 MB); this one is well below any server's, and below what overflows our own stack.
 */
export const JSON_DEPTH_MAX = 1_000

/** Whether brackets nest deeper than `depth_max` in a JSON text. Brackets inside strings do not count. */
export function nestsTooDeep(text: string, depth_max: number): boolean {
  if (text.length <= depth_max || !hasMore(text, depth_max)) return false
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x22) at = endOfString(text, at) - 1
    else if (code === 0x5b || code === 0x7b) {
      if (++depth > depth_max) return true
    } else if (code === 0x5d || code === 0x7d) depth--
  }
  return false
}

/** Whether there are more opening brackets than that, those inside strings included: most texts have far fewer. */
function hasMore(text: string, brackets_max: number): boolean {
  let left = brackets_max
  for (const bracket of '{[')
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1))
      if (--left < 0) return true
  return false
}
