import type { Tracing } from './tracing.js'

/** Where every copy of OpenTelemetry's API in the process keeps what was registered. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1')

/** Returns the tracing if the process was started with the operator's OpenTelemetry SDK; otherwise undefined. */
export async function findTracing(): Promise<Tracing | undefined> {
  // Loading its API takes a twentieth of the startup time, so only those who use it pay for it.
  if (!(REGISTERED in globalThis)) return undefined
  const { registeredTracing } = await import('./tracing.js')
  return registeredTracing()
}
