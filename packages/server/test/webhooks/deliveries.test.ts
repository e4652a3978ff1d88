import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Logger, pino } from 'pino'
import { expect, it, vi } from 'vitest'
import type { Database, Parameter } from '../../../kits/src/postgres/database.ts'
import type { Statement } from '../../../kits/src/postgres/statement.ts'
import { Deliveries } from '../../src/webhooks/deliveries.ts'
import {
  AFTER_ATTEMPT,
  FIND_DUE_WEBHOOKS,
  FIND_NEXT_ENTRY,
  LEASE_DELIVERY,
} from '../../src/webhooks/webhook_queries.ts'

it('a delivery that finds no free place waits for its next turn, and nobody is warned', async () => {
  const abort = new AbortController()
  // It takes the only place, and never answers.
  const receiver = createServer(() => {}).listen(0, '127.0.0.1')
  const { port } = await new Promise<AddressInfo>((resolve) =>
    receiver.once('listening', () => resolve(receiver.address() as AddressInfo)),
  )
  const leased = new Set<Parameter>()
  const released: Array<readonly Parameter[]> = []
  const query = async (statement: Statement, parameters: readonly Parameter[]) => {
    if (statement === FIND_DUE_WEBHOOKS)
      return ['one', 'two'].map((webhook_id) => ({ project_id: webhook_id, webhook_id }))
    if (statement === LEASE_DELIVERY) {
      if (leased.has(parameters[1]!)) return []
      leased.add(parameters[1]!)
      return [{ session_id: 'session', attempts: '0', delivered_seq: '0', through_seq: '1' }]
    }
    const secret = `whsec_${Buffer.alloc(32).toString('base64')}`
    if (statement === FIND_NEXT_ENTRY)
      return [
        { seq: '1', kind: 'event', type: 'x', bytes: '1000000', url: `http://127.0.0.1:${port}/`, secret },
      ]
    if (statement === AFTER_ATTEMPT.release) released.push(parameters)
    return []
  }
  const logger = pino({ enabled: false }) as Logger
  const warn = vi.spyOn(logger, 'warn')
  const deliveries = new Deliveries({
    database: { query } as unknown as Database,
    signal: abort.signal,
    logger,
    to_private: true,
    poll_ms: 10,
    attempts_max: 1,
    place_ms_max: 20,
  })
  try {
    await vi.waitFor(() => expect(released).toHaveLength(1))
    expect(warn).not.toHaveBeenCalled()
  } finally {
    abort.abort()
    receiver.closeAllConnections()
    receiver.close()
    await deliveries.ended()
  }
})
