import type { CallOptions } from './options.js'
import type { Transport } from './transport.js'
import type { CreatedWebhook, NewWebhook, Webhook } from './types.js'

/** Where the project is told of new entries. */
export class Webhooks {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** The project's webhooks, oldest first, without their secrets. */
  async list(options?: CallOptions): Promise<Webhook[]> {
    const { items } = await this.#transport.call<{ items: Webhook[] }>(
      { method: 'GET', path: ['webhooks'] },
      options,
    )
    return items
  }

  /** Creates a webhook. Its secret, which verifies deliveries, is shown only this once. */
  create(webhook: NewWebhook, options?: CallOptions): Promise<CreatedWebhook> {
    return this.#transport.call({ method: 'POST', path: ['webhooks'], body: webhook }, options)
  }

  /** Deletes a webhook; what was not delivered is dropped. */
  async delete(webhook_id: string, options?: CallOptions): Promise<void> {
    const done_when = 'webhook_not_found'
    await this.#transport.call({ method: 'DELETE', path: ['webhooks', webhook_id], done_when }, options)
  }
}
