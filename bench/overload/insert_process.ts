import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { carryOut } from '../../lab/other_process.ts'
import { toolCall } from '../sessions.ts'
import { YARDSTICK_INSERT } from '../yardstick.ts'
import type { Answers } from './offer.ts'
import { AHEAD, summed, takePriority } from './probing.ts'

/*
 * The process that stores one row at a time, at a rate: a commit each, as a quiet tenant's appends are.
 */

/** As many rows as may be under way at once. */
const CONNECTIONS = 8

/** What the process is told, and what it tells. */
export interface InsertOrder {
  url: string
  per_second: number
  seconds: number
}

takePriority(AHEAD)
carryOut(run)

async function run({ url, per_second, seconds }: InsertOrder): Promise<Answers> {
  const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS })
  const values = [1, JSON.stringify(toolCall(0).data)]
  const insert = () => pool.query({ name: 'insert', text: YARDSTICK_INSERT, values })
  try {
    await Promise.all(Array.from({ length: CONNECTIONS }, insert))
    const latencies: number[] = []
    const inserted: Promise<void>[] = []
    const began = performance.now()
    for (let due = 0; due < per_second * seconds; due += 1) {
      await sleep(Math.max(began + (due * 1_000) / per_second - performance.now(), 0))
      const sent_at = performance.now()
      inserted.push(insert().then(() => void latencies.push(performance.now() - sent_at)))
    }
    await Promise.all(inserted)
    return summed(latencies)
  } finally {
    await pool.end()
  }
}
