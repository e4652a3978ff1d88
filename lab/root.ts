/** The repository's directory, seen from `lab` or, compiled into a program's own directory, from `<program>/dist/lab`. */
export const ROOT = new URL(import.meta.url.includes('/dist/') ? '../../../' : '../', import.meta.url)
