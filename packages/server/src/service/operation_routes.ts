import { setTimeout as sleep } from 'node:timers/promises'
import type { AppServer } from '@annals/kits/http/app_server.js'
import { operationsOf } from '@annals/kits/http/operation.js'
import type { Kits } from '@annals/kits/module.js'
import type { Database } from '@annals/kits/postgres/database.js'
import { schemaVersion } from '@annals/kits/postgres/migrations.js'
import { planned } from '@annals/kits/postgres/statement.js'

const CHECK = planned(
  'check_ready',
  "SELECT max(version) AS version, current_setting('transaction_read_only') AS read_only FROM schema_migrations",
)

/** Rows: worker, and whether it can only be read. */
export const FIND_WORKERS_AWAY = planned(
  'find_workers_away',
  `SELECT w.nodename || ':' || w.nodeport || CASE WHEN w.success THEN ' (read-only)' ELSE '' END AS worker
FROM run_command_on_workers($$SELECT current_setting('transaction_read_only')$$) AS w WHERE NOT w.success OR w.result = 'on'`,
)
/**
 * A worker that takes connections and never answers would hold the question for as long as a statement may run. All who
 * ask wait for the same question: there are few of these connections, and keys are looked up over them.
 */
const WORKERS_MS_MAX = 2_000

/**
 * For operators: is the process alive, can it serve, which includes that it can write. Without the envelope. On a cluster
 * a node can serve the projects whose workers answer, and so is ready; it names the workers that do not, or only read.
 */
export function operationRoutes(
  app: AppServer,
  { reserved, isReady }: Pick<Kits, 'reserved' | 'isReady'>,
): void {
  let asked: Promise<string[]> | undefined
  const askOnce = () => {
    asked ??= askForWorkersAway(reserved).finally(() => {
      asked = undefined
    })
    return asked
  }

  app.get('/health', async (_request, reply) => reply.send({ status: 'ok' }))

  app.get('/ready', async (_request, reply) => {
    const refuse = (status: string) => reply.code(503).header('retry-after', '1').send({ status })
    if (!isReady()) return reply.code(503).send({ status: 'stopping' })
    try {
      const [row] = await reserved.query(CHECK, [])
      if (row?.read_only === 'on') {
        reserved.renew()
        return refuse('database read-only')
      }
      if (reserved.stalls) return refuse('database commits nothing')
      if (Number(row?.version) !== schemaVersion())
        return reply.code(503).send({ status: 'schema of another version' })
      if (!reserved.distributed) return reply.send({ status: 'ready' })
      return reply.send({ status: 'ready', workers_away: await findWorkersAway(askOnce()) })
    } catch {
      return refuse('database away')
    }
  })
}

async function askForWorkersAway(database: Database): Promise<string[]> {
  const rows = await database.query(FIND_WORKERS_AWAY, [])
  return rows.map((row) => row.worker!)
}

/** The workers of a cluster that cannot be reached, or that some cannot, if the answer takes too long. */
async function findWorkersAway(asked: Promise<string[]>): Promise<string[]> {
  asked.catch(() => {})
  const timeout = new AbortController()
  try {
    const late = sleep(WORKERS_MS_MAX, ['a worker that does not answer'], { signal: timeout.signal })
    late.catch(() => {})
    return await Promise.race([asked, late])
  } finally {
    timeout.abort()
  }
}

const PONG = '{"code":0,"error":"","msg":"pong","data":{}}'

export const pingRoutes = operationsOf('Service')({
  call: 'GET /ping',
  id: 'ping',
  summary: 'Check the URL and the token',
  returns: 'Both are valid.',
  scope: 'any',
  reach: 'any',
  message: 'pong',
  handle: async (_request, reply) =>
    reply.header('content-type', 'application/json; charset=utf-8').send(PONG),
})
