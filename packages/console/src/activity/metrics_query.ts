import { useQuery } from '@tanstack/react-query'
import { useRef } from 'react'
import { type Moment, momentBetween, type Reading, readMetrics } from './metrics.ts'

const EVERY_MS = 2_000
const MOMENTS_MAX = 300

/** The service's metrics, read every two seconds while the view is open. */
export function useMoments() {
  const before = useRef<Reading>(undefined)
  const moments = useRef<Moment[]>([])
  return useQuery({
    queryKey: ['metrics'],
    gcTime: 0,
    refetchInterval: EVERY_MS,
    queryFn: async ({ signal }) => {
      const response = await fetch('/metrics', { signal })
      if (!response.ok) throw new Error(`/metrics answered ${response.status}.`)
      const reading = { at: Date.now() / 1000, samples: readMetrics(await response.text()) }
      if (before.current && reading.at > before.current.at) {
        moments.current = [...moments.current, momentBetween(before.current, reading)].slice(-MOMENTS_MAX)
      }
      before.current = reading
      return moments.current
    },
  })
}
