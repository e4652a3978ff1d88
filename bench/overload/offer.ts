import { orderOf } from '../../lab/other_process.ts'
import type { LoadRequest } from '../load.ts'
import type { Service } from '../service.ts'

/** Requests that come when they come, whether or not earlier ones are answered. */
export interface Offer {
  services: Service[]
  /** One token for each tenant; requests are spread over them evenly. */
  tokens: string[]
  /** For each tenant, what it sends; one of these at random for each request. */
  requests: LoadRequest[][]
  per_second: number
  /** One request in flight each. One that is due while all are busy is not sent, and counted. */
  connections: number
  /** One that is due while all are busy waits for a connection instead, and its time counts from when it was due. */
  queued?: true
  seconds: number
  /** Of the process that asks, as `nice` has it: a prober's own waiting for a processor is not the service's. */
  priority?: number
}

/** What came of the requests that were answered with one status. */
export interface Answers {
  requests: number
  p50_ms: number
  p99_ms: number
  max_ms: number
}

export interface OfferResult {
  seconds: number
  due: number
  sent: number
  /** Of answered requests, by status, or `closed` for connections that the service ended. */
  answers: Record<string, Answers>
  cpu_us: number
  /** How long it had itself to wait for its turn: where the machine is busy, latencies have this in them. */
  late_p99_ms: number
}

/** What the process that offers is told. */
export interface OfferOrder extends Omit<Offer, 'services' | 'priority'> {
  urls: string[]
}

/** Offers from a process of its own. */
export function offer({ services, priority = 0, ...rest }: Offer): Promise<OfferResult> {
  const order: OfferOrder = { ...rest, urls: services.map(({ url }) => url) }
  const module = new URL('./offer_process.js', import.meta.url)
  return orderOf(module, order, { args: [String(priority)] })
}
