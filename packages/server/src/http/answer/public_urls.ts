import type { FastifyRequest } from 'fastify'
import type { Asset } from '../../blobs/asset_urls.js'
import { logReadBytes } from '../admission/request_memory.js'
import type { AppParts } from '../service_context.js'
import { EDITED_BYTES_MAX } from './message_edits.js'

/** Where signed URLs lead. */
export const ASSETS_PATH = '/assets'

/** Memory that the hash of a blob takes. */
const HASH_BYTES = 256
const AT_ONCE = 1_000

/** A signed URL for each blob that an answer shows. */
export class PublicUrls {
  private readonly shown = new Set<string>()

  constructor(
    private readonly parts: Pick<AppParts, 'config' | 'assets'>,
    private readonly request: FastifyRequest,
    private readonly session: Omit<Asset, 'sha256'>,
  ) {}

  /** Notes a blob. @throws AnnalsError overloaded */
  async show(sha256: string): Promise<void> {
    this.shown.add(sha256)
    if (this.shown.size % AT_ONCE > 0) return
    const beside = logReadBytes(this.request) + EDITED_BYTES_MAX
    await this.request.memory.hold(beside + this.shown.size * HASH_BYTES)
  }

  /** Those that were noted by now: a JSON object by their hashes, in chunks. */
  async *json(): AsyncGenerator<string> {
    const { config, assets } = this.parts
    const { host } = this.request.headers
    // As the caller reached the service, who alone reads it. HTTP/1.0 may have no host.
    const origin = host === undefined ? '' : `${config.behind_tls === 'true' ? 'https' : 'http'}://${host}`
    let text = '{'
    let written = 0
    for (const sha256 of this.shown) {
      const { token, expire_at } = await assets.sign({ ...this.session, sha256 })
      const url = JSON.stringify(`${origin}${ASSETS_PATH}/${token}`)
      text += `${written > 0 ? ',' : ''}"${sha256}":{"url":${url},"expire_at":"${expire_at}"}`
      written += 1
      if (written % AT_ONCE > 0) continue
      yield text
      text = ''
    }
    yield `${text}}`
  }
}
