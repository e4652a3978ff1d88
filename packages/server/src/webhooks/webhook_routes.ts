import Type from '#typebox'
import { responses } from '../contract/responses.js'
import { Empty } from '../contract/schema.js'
import { answer } from '../http/answer/answer.js'
import type { AppServer } from '../http/app_server.js'
import { takeWhole } from '../http/request/bodies.js'
import { takeBody } from '../http/request/taken_body.js'
import type { AppParts } from '../http/service_context.js'
import { CreateWebhookBody, NewWebhook, WebhookParams } from './webhook_schema.js'
import { createWebhook, deleteWebhook, listWebhooks } from './webhooks.js'

const SHARED = { tags: ['Webhooks'] }

/** Webhooks: create, list, delete. */
export function webhookRoutes(app: AppServer, { changes, config }: AppParts): void {
  app.post(
    '/webhooks',
    {
      schema: {
        ...SHARED,
        operationId: 'createWebhook',
        summary: 'Create a webhook',
        description:
          'From now on, each new entry of these kinds is posted to the URL: at least once, in order of `seq` within its session, signed after the Standard Webhooks specification. A project may have 10.',
        body: CreateWebhookBody,
        response: responses({
          status: 201,
          description: 'The webhook with its secret.',
          data: NewWebhook,
          body: true,
          errors: ['too_many_webhooks'],
        }),
      },
    },
    async (request, reply) => {
      const { database, project_id } = request
      const to_private = config.webhooks_to_private === 'true'
      const webhook = await createWebhook(database, project_id, takeBody(request, takeWhole), to_private)
      changes.touched(project_id)
      return answer(reply, webhook, 201)
    },
  )

  app.get(
    '/webhooks',
    {
      schema: {
        ...SHARED,
        operationId: 'listWebhooks',
        summary: "List the project's webhooks",
        description: 'Oldest first, without their secrets, with the last error of each.',
        response: responses({
          description: 'All webhooks.',
          data: Type.Object({ items: Type.Array(Type.Ref('Webhook')) }),
        }),
      },
    },
    async (request, reply) =>
      answer(reply, `{"items":[${(await listWebhooks(request.database, request.project_id)).join(',')}]}`),
  )

  app.delete(
    '/webhooks/:webhook_id',
    {
      schema: {
        ...SHARED,
        operationId: 'deleteWebhook',
        summary: 'Delete a webhook',
        description: 'What was not delivered is dropped.',
        params: WebhookParams,
        response: responses({ description: 'It was deleted.', data: Empty, errors: ['webhook_not_found'] }),
      },
    },
    async (request, reply) => {
      await deleteWebhook(request.database, request.project_id, request.params.webhook_id)
      return answer(reply, '{}')
    },
  )
}
