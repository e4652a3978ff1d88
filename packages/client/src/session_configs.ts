import type { CallOptions } from './options.js'
import type { Transport } from './transport.js'
import type { MergedConfigs, Session } from './types.js'

/** What a caller keeps with a session. */
export class SessionConfigs {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** The session, which its configs are part of. */
  get(session_id: string, options?: CallOptions): Promise<Session> {
    return this.#transport.call({ method: 'GET', path: ['session', session_id, 'configs'] }, options)
  }

  async replace(session_id: string, configs: object, options?: CallOptions): Promise<void> {
    await this.#transport.call(
      { method: 'PUT', path: ['session', session_id, 'configs'], body: { configs } },
      options,
    )
  }

  /** Merges the top level: null deletes a key. Gives the configs after the merge. */
  merge(session_id: string, configs: object, options?: CallOptions): Promise<MergedConfigs> {
    return this.#transport.call(
      { method: 'PATCH', path: ['session', session_id, 'configs'], body: { configs } },
      options,
    )
  }
}
