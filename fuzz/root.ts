/** The repository's directory, seen from `fuzz` or, compiled, from `fuzz/dist`. */
export const ROOT = new URL(import.meta.url.includes('/dist/') ? '../../' : '../', import.meta.url)
