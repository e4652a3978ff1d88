import { pino } from 'pino'
import { expect, it, vi } from 'vitest'
import type { Erasure } from '../../../../kits/src/lifecycle/erase/erasure.ts'
import type { Database, Parameter } from '../../../../kits/src/postgres/database.ts'
import type { Statement } from '../../../../kits/src/postgres/statement.ts'
import { applyRetention } from '../../../src/sessions/erase/retention.ts'

const EVERY_MS = 10

it('a project whose sessions cannot be deleted keeps no other’s from being deleted, and nothing else', async () => {
  const done = new Set<string>()
  const rows: Record<string, object[]> = {
    find_projects_with_remains: [{ id: 'failing' }, { id: 'remains' }],
    find_projects_with_retention: [
      { id: 'failing', retention_days: '1' },
      { id: 'retention', retention_days: '1' },
    ],
    time_before: [{ time: '2026-11-21T09:30:00.123456Z' }],
    find_old_sessions: [{ id: 'old', goes: 't', created_at: '', last_seq: '0' }],
    find_due_sessions: [
      { project_id: 'failing', id: 'due' },
      { project_id: 'expiry', id: 'due' },
    ],
  }
  const query = async ({ name }: Statement, _: readonly Parameter[]) => rows[name] ?? []
  const erase = async ({ project_id }: { project_id: string }) => {
    if (project_id === 'failing') throw new Error('it cannot be deleted')
    done.add(project_id)
    return {}
  }
  const erasure = { erase, eraseAllRemains: erase } as unknown as Erasure
  const sweep = async () => void done.add('sweep')
  const database = { query } as unknown as Database
  const abort = new AbortController()
  const logger = pino({ enabled: false })
  const retention = applyRetention({ database, signal: abort.signal, logger }, erasure, EVERY_MS, [sweep])
  await vi.waitFor(() => expect([...done].sort()).toEqual(['expiry', 'remains', 'retention', 'sweep']))
  abort.abort()
  await retention.ended()
})
