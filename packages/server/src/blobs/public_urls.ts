import type { FastifyRequest } from 'fastify'
import { logReadBytes } from '../http/admission/request_memory.js'
import { EDITED_BYTES_MAX } from '../log/render/message_edits.js'
import type { AppParts } from '../service/service_context.js'
import type { Asset } from './asset_urls.js'

/** Where signed URLs lead. */
export const ASSETS_PATH = '/assets'

/** Memory that the hash of a blob takes. */
const HASH_BYTES = 256
const AT_ONCE = 1_000

/** A URL that gives an asset without a key: as the caller, who alone reads it, reached the service. */
export async function publicUrl(
  { config, assets }: Pick<AppParts, 'config' | 'assets'>,
  { headers: { host } }: FastifyRequest,
  asset: Asset,
  valid_s?: number,
): Promise<{ url: string; expire_at: string }> {
  const { token, expire_at } = await assets.sign(asset, valid_s)
  // HTTP/1.0 may have no host.
  const origin = host === undefined ? '' : `${config.behind_tls === 'true' ? 'https' : 'http'}://${host}`
  return { url: `${origin}${ASSETS_PATH}/${token}`, expire_at }
}

/** A signed URL for each blob that an answer shows. */
export class PublicUrls {
  private readonly shown = new Set<string>()

  constructor(
    private readonly parts: Pick<AppParts, 'config' | 'assets'>,
    private readonly request: FastifyRequest,
    private readonly session: { project_id: string; session_id: string },
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
    const { project_id, session_id: owner_id } = this.session
    let text = '{'
    let written = 0
    for (const sha256 of this.shown) {
      const url = await publicUrl(this.parts, this.request, { project_id, owner_id, sha256 })
      text += `${written > 0 ? ',' : ''}"${sha256}":${JSON.stringify(url)}`
      written += 1
      if (written % AT_ONCE > 0) continue
      yield text
      text = ''
    }
    yield `${text}}`
  }
}
