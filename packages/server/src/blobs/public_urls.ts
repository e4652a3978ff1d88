import type { Config } from '@annals/kits/configuration/config.js'
import { AnnalsError } from '@annals/kits/errors.js'
import type { FastifyRequest } from 'fastify'
import type { Asset, AssetUrls } from './asset_urls.js'

export interface PublicUrlMaker {
  config: Pick<Config, 'behind_tls'>
  assets: Pick<AssetUrls, 'sign'>
}

export const ASSETS_PATH = '/assets'

const HASH_BYTES = 256
const AT_ONCE = 1_000

/** @throws AnnalsError insufficient_scope: such a URL would serve a masked reader bytes that are not masked */
export function refuseUrls({ grant }: Pick<FastifyRequest, 'grant'>): void {
  if (grant?.masked)
    throw new AnnalsError(
      'insufficient_scope',
      'This API key is masked: it cannot get URLs of attachments and files. Use a key that is not masked.',
    )
}

/** A URL that serves an asset without a key; it begins with the address at which the caller reached the service. */
export async function publicUrl(
  { config, assets }: PublicUrlMaker,
  { grant, headers: { host } }: FastifyRequest,
  asset: Asset,
  valid_s?: number,
): Promise<{ url: string; expire_at: string }> {
  refuseUrls({ grant })
  const { token, expire_at } = await assets.sign(asset, valid_s)
  // HTTP/1.0 may have no host.
  const origin = host === undefined ? '' : `${config.behind_tls === 'true' ? 'https' : 'http'}://${host}`
  return { url: `${origin}${ASSETS_PATH}/${token}`, expire_at }
}

export class PublicUrls {
  private readonly shown = new Set<string>()

  constructor(
    private readonly parts: PublicUrlMaker,
    private readonly request: FastifyRequest,
    private readonly session: { project_id: string; session_id: string },
    /** Bytes of memory that the answer needs beside the hashes. */
    private readonly beside_bytes: number,
  ) {
    // Before the answer begins.
    refuseUrls(request)
  }

  async show(sha256: string): Promise<void> {
    this.shown.add(sha256)
    if (this.shown.size % AT_ONCE > 0) return
    await this.request.memory.hold(this.beside_bytes + this.shown.size * HASH_BYTES)
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
