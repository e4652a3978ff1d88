import { Empty } from '@annals/kits/contract/schema.js'
import { itemsOf } from '@annals/kits/http/answer/answer.js'
import { DATA_ID } from '@annals/kits/http/openapi/openapi_links.js'
import { allOf, operationsOf } from '@annals/kits/http/operation.js'
import type { Kits, ModuleRoutes } from '@annals/kits/module.js'
import Type from '#typebox'
import { NewWebhook, WEBHOOK_BODIES, Webhook } from './webhook_schema.js'
import { createWebhook, deleteWebhook, listWebhooks } from './webhooks.js'

const operation = operationsOf('Webhooks')

const ownRoutes = ({ changes, config }: Pick<Kits, 'changes' | 'config'>) =>
  allOf(
    operation({
      call: 'POST /webhooks',
      id: 'createWebhook',
      body: WEBHOOK_BODIES.createWebhook,
      summary: 'Create a webhook',
      description:
        'From now on, each new entry of these kinds is posted to the URL: at least once, in order of `seq` within its session, and signed as Standard Webhooks specifies. A project may have 10.',
      status: 201,
      returns: 'The webhook with its secret.',
      data: NewWebhook,
      errors: ['too_many_webhooks'],
      json: async (request, _reply, body) => {
        const to_private = config.webhooks_to_private === 'true'
        const webhook = await createWebhook(request, body, to_private)
        changes.touched(request.project_id)
        return webhook
      },
    }),

    operation({
      call: 'GET /webhooks',
      id: 'listWebhooks',
      summary: "List the project's webhooks",
      description: 'Oldest first, without their secrets, with the last error of each.',
      returns: 'All webhooks.',
      data: Type.Object({ items: Type.Array(Type.Ref('Webhook')) }),
      json: async (request) => itemsOf(await listWebhooks(request)),
    }),

    operation({
      call: 'DELETE /webhooks/:webhook_id',
      id: 'deleteWebhook',
      summary: 'Delete a webhook',
      description: 'Its undelivered entries are dropped.',
      returns: 'It was deleted.',
      data: Empty,
      json: async (request) => {
        await deleteWebhook(request, request.params.webhook_id)
      },
    }),
  )

export const webhookRoutes = (kits: Kits): ModuleRoutes => ({
  project: ownRoutes(kits),
  schemas: [Webhook],
  links: { createWebhook: { webhook_id: DATA_ID } },
})
