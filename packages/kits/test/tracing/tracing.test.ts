import { trace } from '@opentelemetry/api'
import { NodeTracerProvider, type SpanProcessor } from '@opentelemetry/sdk-trace-node'
import { afterEach, describe, expect, it } from 'vitest'
import type { PendingAppend } from '../../../server/src/log/append/append_request.js'
import { findTracing } from '../../src/tracing/find_tracing.js'
import { registeredTracing } from '../../src/tracing/tracing.js'

const broken: SpanProcessor = {
  onStart: () => {
    throw new Error('the processor is broken')
  },
  onEnd: () => {},
  forceFlush: async () => {},
  shutdown: async () => {},
}

const pending = (origin: unknown): PendingAppend => ({
  request: { project_id: 'p', session_id: 's', kind: 'event', entries: [], unmarked_until: 0 },
  bytes: 0,
  enqueued_at: 0,
  origin,
  followers: [],
  resolve: () => {},
  reject: () => {},
})

afterEach(() => trace.disable())

describe('tracing', () => {
  it('is not there unless the process has an SDK', async () => {
    expect(await findTracing()).toBeUndefined()
    new NodeTracerProvider().register()
    expect(await findTracing()).toBeDefined()
  })

  it('loses spans and nothing else when a part of the SDK fails', async () => {
    const provider = new NodeTracerProvider()
    provider.register()
    const outside = trace.getTracer('test').startSpan('request')
    const origin = trace.setSpan(registeredTracing()!.origin(), outside)
    trace.disable()
    new NodeTracerProvider({ spanProcessors: [broken] }).register()
    const tracing = registeredTracing()!

    const done: string[] = []
    const request = tracing.request('POST', '/route', 'id', {})
    request.enter(() => done.push('request'))
    request.end({ status: 200, project_id: undefined })
    await tracing.flush([pending(origin)], async () => {
      done.push('flush')
    })
    expect(done).toEqual(['request', 'flush'])
  })

  it('has a flush carried out once, though the flush itself fails', async () => {
    new NodeTracerProvider().register()
    const origin = trace.setSpan(registeredTracing()!.origin(), trace.getTracer('test').startSpan('request'))
    let runs = 0
    const flush = registeredTracing()!.flush([pending(origin)], async () => {
      runs += 1
      throw new Error('the flush failed')
    })
    await expect(flush).rejects.toThrow('the flush failed')
    expect(runs).toBe(1)
  })
})
