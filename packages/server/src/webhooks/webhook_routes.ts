import Type from '#typebox'
import { Empty } from '../contract/schema.js'
import { answer } from '../http/answer/answer.js'
import { allOf, operationsOf } from '../http/operation.js'
import { takeWhole } from '../http/request/bodies.js'
import { takeBody } from '../http/request/taken_body.js'
import { CreateWebhookBody, NewWebhook, WebhookParams } from './webhook_schema.js'
import { createWebhook, deleteWebhook, listWebhooks } from './webhooks.js'

const operation = operationsOf('Webhooks')

/** Webhooks: create, list, delete. */
export const webhookRoutes = allOf(
  operation({
    call: 'POST /webhooks',
    id: 'createWebhook',
    summary: 'Create a webhook',
    description:
      'From now on, each new entry of these kinds is posted to the URL: at least once, in order of `seq` within its session, signed after the Standard Webhooks specification. A project may have 10.',
    body: CreateWebhookBody,
    status: 201,
    returns: 'The webhook with its secret.',
    data: NewWebhook,
    errors: ['too_many_webhooks'],
    json: async (request, _reply, { changes, config }) => {
      const { database, project_id } = request
      const to_private = config.webhooks_to_private === 'true'
      const webhook = await createWebhook(database, project_id, takeBody(request, takeWhole), to_private)
      changes.touched(project_id)
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
    handle: async (request, reply) =>
      answer(reply, `{"items":[${(await listWebhooks(request.database, request.project_id)).join(',')}]}`),
  }),

  operation({
    call: 'DELETE /webhooks/:webhook_id',
    id: 'deleteWebhook',
    summary: 'Delete a webhook',
    description: 'What was not delivered is dropped.',
    params: WebhookParams,
    returns: 'It was deleted.',
    data: Empty,
    errors: ['webhook_not_found'],
    json: async (request) => {
      await deleteWebhook(request.database, request.project_id, request.params.webhook_id)
    },
  }),
)
