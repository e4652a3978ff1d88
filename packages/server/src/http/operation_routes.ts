import { schemaVersion } from '../postgres/migrator.js'
import { planned } from '../postgres/statement.js'
import type { AppParts, AppServer } from './service_context.js'

const CHECK = planned('check_ready', 'SELECT max(version) AS version FROM schema_migrations')

/** For operators: is the process alive, can it serve. Without the envelope. */
export function operationRoutes(app: AppServer, { reserved, isServing }: AppParts): void {
  app.get('/health', async (_request, reply) => reply.send({ status: 'ok' }))

  app.get('/ready', async (_request, reply) => {
    if (!isServing()) return reply.code(503).send({ status: 'stopping' })
    try {
      const [row] = await reserved.query(CHECK, [])
      const fits = Number(row?.version) === schemaVersion()
      return fits
        ? reply.send({ status: 'ready' })
        : reply.code(503).send({ status: 'schema of another version' })
    } catch {
      return reply.code(503).header('retry-after', '1').send({ status: 'database away' })
    }
  })
}
