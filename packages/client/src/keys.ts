import type { CallOptions } from './options.js'
import type { Transport } from './transport.js'
import type { CreatedKey, Key, NewKey, Redaction, RedactionRule } from './types.js'

/** The project's API keys, for a client whose own key has the scope `admin`. */
export class Keys {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Creates a key. Its secret is shown only this once. */
  create(key: NewKey, options?: CallOptions): Promise<CreatedKey> {
    return this.#transport.call({ method: 'POST', path: ['keys'], body: key, once: true }, options)
  }

  /** The keys, oldest first, without their secrets. */
  async list(options?: CallOptions): Promise<Key[]> {
    const { items } = await this.#transport.call<{ items: Key[] }>({ method: 'GET', path: ['keys'] }, options)
    return items
  }

  /** Revokes a key: every node refuses it within 5 seconds. */
  revoke(key_id: string, options?: CallOptions): Promise<Key> {
    return this.#transport.call({ method: 'DELETE', path: ['keys', key_id] }, options)
  }
}

/** The project's rules of redaction, for a client whose key has the scope `admin`. */
export class RedactionRules {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** The rules; null: redaction is off. */
  get(options?: CallOptions): Promise<Redaction> {
    return this.#transport.call({ method: 'GET', path: ['redaction'] }, options)
  }

  /** Sets the rules; by default, secrets are masked as they are written, and personal data for masked keys. */
  set(rules?: RedactionRule[], options?: CallOptions): Promise<Redaction> {
    return this.#transport.call({ method: 'PUT', path: ['redaction'], body: { rules } }, options)
  }

  /** Switches redaction off. Masked keys go on reading masks. */
  delete(options?: CallOptions): Promise<Redaction> {
    return this.#transport.call({ method: 'DELETE', path: ['redaction'] }, options)
  }
}
