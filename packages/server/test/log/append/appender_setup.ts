import { onTestFinished } from 'vitest'
import type { Row } from '../../../../kits/src/postgres/database.ts'
import type { AppendRequest } from '../../../src/log/append/append_request.ts'
import { Appender, type AppenderOptions } from '../../../src/log/append/appender.ts'
import { FakeDatabase, type Flush } from './fake_database.ts'

/** How long an append waits for its flush, and a flush for a connection. */
export const WAIT_MS = 1_000

/** An appender that ends with its test. */
export function appenderOn(database: FakeDatabase, options: Partial<AppenderOptions> = {}): Appender {
  const appender = new Appender({
    database: { of: () => database },
    queue_requests_max: 100,
    queue_bytes_max: 100_000,
    flushes_max: 4,
    wait_ms_max: WAIT_MS,
    ...options,
  })
  onTestFinished(() => appender.close())
  return appender
}

/** A database that answers when it is told to. */
export function pausedDatabase(): { database: FakeDatabase; answerNext: () => void } {
  const held: Array<() => void> = []
  const hold = (flush: Flush) => new Promise<Row[]>((resolve) => held.push(() => resolve(flush.rows)))
  return { database: new FakeDatabase(hold), answerNext: () => held.shift()!() }
}

/** How an append ended: `stored`, or the name of its error. */
export function ending(appender: Appender, request: AppendRequest): Promise<string> {
  return appender.append(request).then(
    () => 'stored',
    (error: { error?: string; name: string }) => error.error ?? error.name,
  )
}
