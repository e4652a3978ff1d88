import type { Results } from './results.ts'

export function drawChart(_results: Results): string {
  return ''
}
