import { describe, expect, it } from 'vitest'
import { momentBetween, readMetrics } from '../src/activity/metrics.ts'

const NAME = 'annals_http_request_duration_seconds'
const EVENTS = 'route="/api/v1/session/:session_id/events",method="POST"'

/** A reading after so many appends that took up to 10 ms, so many up to 100 ms, and so many answers of 503. */
function readingAt(at: number, fast: number, slow: number, refused: number) {
  const appended = `${EVENTS},status="200"`
  const text = `# HELP ${NAME} Requests.
${NAME}_bucket{le="0.01",${appended}} ${fast}
${NAME}_bucket{le="0.1",${appended}} ${fast + slow}
${NAME}_bucket{le="+Inf",${appended}} ${fast + slow}
${NAME}_count{${appended}} ${fast + slow}
${NAME}_count{${EVENTS},status="503"} ${refused}
annals_append_queue_requests 7
annals_database_connections{pool="requests"} 2
annals_database_connections{pool="appends"} 1
`
  return { at, samples: readMetrics(text) }
}

describe('what happened between two readings of the metrics', () => {
  it('is told per second', () => {
    const moment = momentBetween(readingAt(10, 100, 0, 1), readingAt(12, 298, 2, 5))
    expect(moment).toMatchObject({
      appends_per_s: 100,
      requests_per_s: 102,
      errors_per_s: 2,
      queue: 7,
      connections: 3,
    })
    expect(moment.append_p50).toBeGreaterThan(0)
    expect(moment.append_p50).toBeLessThanOrEqual(10)
  })

  it('has no latency where nothing was appended, and nothing below nought after a restart', () => {
    expect(momentBetween(readingAt(10, 5, 0, 0), readingAt(12, 5, 0, 0)).append_p99).toBeUndefined()
    expect(momentBetween(readingAt(10, 500, 0, 9), readingAt(12, 0, 0, 0))).toMatchObject({
      appends_per_s: 0,
      errors_per_s: 0,
    })
  })
})
