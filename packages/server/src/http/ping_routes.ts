import { responses } from '../contract/responses.js'
import { Empty } from '../contract/schema.js'
import type { AppServer } from './app_server.js'

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
