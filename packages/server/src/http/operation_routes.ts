import { setTimeout as sleep } from 'node:timers/promises'
import { responses } from '../contract/responses.js'
import { Empty } from '../contract/schema.js'
import type { Database } from '../postgres/database.js'
import { schemaVersion } from '../postgres/migrations.js'
import { planned } from '../postgres/statement.js'
import type { AppServer } from './app_server.js'
import type { AppParts } from './service_context.js'

const CHECK = planned('check_ready', 'SELECT max(version) AS version FROM schema_migrations')

const FIND_WORKERS_AWAY = planned(
  'find_workers_away',
  "SELECT w.nodename || ':' || w.nodeport AS worker FROM run_command_on_workers('SELECT 1') AS w WHERE NOT w.success",
)
/** A worker that takes connections and never answers would hold the question for as long as a statement may run. */
const WORKERS_MS_MAX = 2_000

/**
 * For operators: is the process alive, can it serve. Without the envelope. On a cluster a node can serve the projects
 * whose workers answer, and so is ready; it names the workers that do not.
 */
export function operationRoutes(app: AppServer, { reserved, isServing }: AppParts): void {
  app.get('/health', async (_request, reply) => reply.send({ status: 'ok' }))

  app.get('/ready', async (_request, reply) => {
    if (!isServing()) return reply.code(503).send({ status: 'stopping' })
    try {
      const [row] = await reserved.query(CHECK, [])
      if (Number(row?.version) !== schemaVersion())
        return reply.code(503).send({ status: 'schema of another version' })
      if (!reserved.distributed) return reply.send({ status: 'ready' })
      return reply.send({ status: 'ready', workers_away: await findWorkersAway(reserved) })
    } catch {
      return reply.code(503).header('retry-after', '1').send({ status: 'database away' })
    }
  })
}

/** The workers of a cluster that cannot be reached, or that some cannot, if the answer takes too long. */
async function findWorkersAway(database: Database): Promise<string[]> {
  const asked = database.query(FIND_WORKERS_AWAY, []).then((rows) => rows.map((row) => row.worker!))
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

/** Whether the service answers and the token is valid. */
export function pingRoutes(app: AppServer): void {
  app.get(
    '/ping',
    {
      schema: {
        operationId: 'ping',
        summary: 'Check the URL and the token',
        tags: ['Service'],
        response: responses({ description: 'Both are valid.', data: Empty, message: 'pong' }),
      },
    },
    async (_request, reply) => reply.header('content-type', 'application/json; charset=utf-8').send(PONG),
  )
}
