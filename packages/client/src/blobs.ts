import type { CallOptions } from './options.js'
import type { Transport } from './transport.js'
import type { Blob } from './types.js'

/** Attachments: bytes of any kind, which messages and events refer to by their SHA-256. */
export class Blobs {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Sends bytes; bytes that the project already has are not stored again. In browsers, only on https pages. */
  async put(bytes: Uint8Array<ArrayBuffer>, options?: CallOptions): Promise<Blob> {
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
    const sha256 = Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
    return this.#transport.call({ method: 'PUT', path: ['blobs', sha256], bytes }, options)
  }

  /** The bytes, or those from `from` to before `to`. */
  get(
    sha256: string,
    { from, to, ...options }: CallOptions & { from?: number; to?: number } = {},
  ): Promise<Uint8Array<ArrayBuffer>> {
    const range = from === undefined && to === undefined ? undefined : ([from ?? 0, to] as const)
    return this.#transport.call({ method: 'GET', path: ['blobs', sha256], range }, options)
  }
}
