import { forkedAsBatch } from '../lab/batch_policy.ts'
import { orderOf } from '../lab/other_process.ts'
import { type CpuOf, type CpuUsed, measureCpu } from './cpu.ts'
import type { Service } from './service.ts'

/** A request of a load. The body is sent as it is. */
export interface LoadRequest {
  method: string
  path: string
  body?: string
  /** Sent beside those that each request has. */
  headers?: Record<string, string>
  /** Hexadecimal digits in the body, in place of which each request has others. */
  own?: string
}

export interface LoadOptions {
  /** Connections are shared out evenly. */
  services: Service[]
  /** Requests in flight: each connection sends its next one when it has the answer. */
  connections: number
  seconds: number
  /** Each connection takes one of these at random for each request. */
  requests: LoadRequest[]
  /** Instead, each is sent once, in order: there have to be enough. */
  in_order?: boolean
  /** Every answer must have this status, or the run has failed. */
  status: number
  /** What else to count the CPU time of: databases by any connection to them. */
  cpu_of?: CpuOf
}

export interface LoadResult {
  requests: number
  seconds: number
  per_second: number
  p50_ms: number
  p99_ms: number
  max_ms: number
  /** Where there is /proc. */
  cpu?: LoadCpu
}

/** CPU time a request, in microseconds; shares are of all that the machine's processors could have given. */
export interface LoadCpu {
  service_us: number
  postgres_us: number
  generator_us: number
  idle_share: number
  /** Used by nobody of these: by the kernel for itself, and by whatever else runs. Much of it spoils figures. */
  others_share: number
}

/** What the process that makes the load is told, and what it tells. */
export interface LoadOrder extends Omit<LoadOptions, 'services' | 'cpu_of'> {
  targets: Array<{ url: string; token: string }>
}
export type LoadMeasured = Omit<LoadResult, 'per_second' | 'cpu'> & { cpu_us: number }

/** Puts load on the service from a process of its own, and measures what it takes. */
export async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const { services, cpu_of, ...order } = options
  const targets = services.map(({ url, token }) => ({ url, token }))
  const stopMeasuring = await measureCpu({ services, ...cpu_of })
  const carriedOut: LoadOrder = { ...order, targets }
  const module = new URL('./load_process.js', import.meta.url)
  const { cpu_us, ...result } = await orderOf<LoadMeasured>(module, carriedOut, forkedAsBatch())
  const used = await stopMeasuring()
  const cpu = used && cpuOf(used, cpu_us, result.requests)
  return { ...result, per_second: result.requests / result.seconds, ...(cpu && { cpu }) }
}

/** All that a request took, the making of it included, in microseconds. */
export function totalCpu(cpu: { service_us?: number; postgres_us: number; generator_us: number }): number {
  return (cpu.service_us ?? 0) + cpu.postgres_us + cpu.generator_us
}

function cpuOf(used: CpuUsed, generator_us: number, requests: number): LoadCpu {
  const { service_us, postgres_us, machine_us, capacity_us } = used
  const share = (us: number) => Math.round((us / capacity_us) * 1000) / 1000
  return {
    service_us: Math.round(service_us / requests),
    postgres_us: Math.round(postgres_us / requests),
    generator_us: Math.round(generator_us / requests),
    idle_share: share(capacity_us - machine_us),
    others_share: share(Math.max(machine_us - service_us - postgres_us - generator_us, 0)),
  }
}
