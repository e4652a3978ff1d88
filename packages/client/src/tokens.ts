import type { CallOptions } from './options.js'
import type { Transport } from './transport.js'
import type { IssuedToken, NewToken } from './types.js'

/** Tokens for a browser, a runner or a partner, which reach only some sessions. */
export class Tokens {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Makes a token. It is stored nowhere, and ends when it expires or the client's own key is revoked. */
  create(token: NewToken, options?: CallOptions): Promise<IssuedToken> {
    return this.#transport.call({ method: 'POST', path: ['tokens'], body: token }, options)
  }
}
