import type { ModuleRoutes } from '../http/module.js'
import { DATA_ID } from '../http/openapi/openapi_links.js'
import { webhookRoutes } from './webhook_routes.js'
import { Webhook } from './webhook_schema.js'

export const WEBHOOK_ROUTES: ModuleRoutes = {
  project: webhookRoutes,
  schemas: [Webhook],
  links: { createWebhook: { to: ['deleteWebhook'], parameters: { webhook_id: DATA_ID } } },
}
