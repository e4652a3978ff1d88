import type { CallOptions, WriteOptions } from './options.js'
import type { Transport } from './transport.js'
import type { MergedConfigs, Session } from './types.js'

/** The configs of a session. */
export class SessionConfigs {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** The session, including its configs. */
  get(session_id: string, options?: CallOptions): Promise<Session> {
    return this.#transport.call({ method: 'GET', path: ['session', session_id, 'configs'] }, options)
  }

  async replace(session_id: string, configs: object, options?: WriteOptions): Promise<void> {
    await this.#transport.call(
      { method: 'PUT', path: ['session', session_id, 'configs'], body: { configs } },
      options,
    )
  }

  /** Merges the top level; null deletes a key. Returns the merged configs. */
  merge(session_id: string, configs: object, options?: WriteOptions): Promise<MergedConfigs> {
    return this.#transport.call(
      { method: 'PATCH', path: ['session', session_id, 'configs'], body: { configs } },
      options,
    )
  }
}
