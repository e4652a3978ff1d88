import type { Tracing } from './tracing.js'

/** Where each copy of OpenTelemetry's API that is in the process keeps what was registered with it. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1')

/** Gives the tracing where the process was started with an OpenTelemetry SDK of the user's; undefined otherwise. */
export async function findTracing(): Promise<Tracing | undefined> {
  // Its API is a twentieth of the start, which is for those alone who use it.
  if (!(REGISTERED in globalThis)) return undefined
  const { registeredTracing } = await import('./tracing.js')
  return registeredTracing()
}
