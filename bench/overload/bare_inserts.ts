import { orderOf } from '../../lab/other_process.ts'
import type { BenchDatabase } from '../postgres.ts'
import { prepareYardstick } from '../yardstick.ts'
import type { InsertOrder } from './insert_process.ts'
import type { Answers } from './offer.ts'

/** What a quiet tenant meets, without Annals: a client of PostgreSQL that stores few rows, alone or beside others. */
export interface BareInserts {
  /** Few rows, to see how long they take. */
  probe(seconds: number): Promise<Answers>
  /** As many rows as so many clients get through. */
  fullSpeed(clients: number, seconds: number): Promise<unknown>
}

/** Prepares a database for it; undefined where pgbench is missing. */
export async function bareInserts(
  database: BenchDatabase,
  directory: string,
  per_second: number,
): Promise<BareInserts | undefined> {
  const yardstick = await prepareYardstick({ directory }, database)
  if (!yardstick) return undefined
  return {
    probe: (seconds) => insertInProcess({ url: database.url, per_second, seconds }),
    fullSpeed: (clients, seconds) => yardstick(1, clients, seconds),
  }
}

/** In a process of its own, as requests are offered from one. */
function insertInProcess(order: InsertOrder): Promise<Answers> {
  return orderOf(new URL('./insert_process.js', import.meta.url), order)
}
