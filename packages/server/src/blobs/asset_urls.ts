import { createHmac, timingSafeEqual } from 'node:crypto'
import { AnnalsError } from '@annals/kits/errors.js'
import type { Queryable } from '@annals/kits/postgres/database.js'
import { FIND_ASSET_URL_SECRET } from './blob_queries.js'

const VALID_S = 300
const ID_BYTES = 16
const HASH_BYTES = 32
const TIME_BYTES = 6
const CLAIMS_BYTES = 2 * ID_BYTES + HASH_BYTES + TIME_BYTES
/** Claims and MAC, in base64url: without padding, each text stands for other bytes. */
const TOKEN = /^[\w-]{136}$/

export interface Asset {
  project_id: string
  owner_id: string
  sha256: string
}

/**
 * Signs URLs that serve one asset to whoever has them, for some minutes. What is asked for and until when is in the URL, with
 * a MAC whose key all nodes share: a guess costs nobody a look-up.
 */
export class AssetUrls {
  private secret: Promise<string> | undefined

  constructor(private readonly database: Queryable) {}

  /** The last part of a path, and when it expires. */
  async sign(
    { project_id, owner_id, sha256 }: Asset,
    valid_s = VALID_S,
  ): Promise<{ token: string; expire_at: string }> {
    const expires_s = Math.floor(Date.now() / 1_000) + valid_s
    const time = Buffer.alloc(TIME_BYTES)
    time.writeUIntBE(expires_s, 0, TIME_BYTES)
    const ids = Buffer.from(`${project_id}${owner_id}`.replaceAll('-', '') + sha256, 'hex')
    const claims = Buffer.concat([ids, time])
    const token = Buffer.concat([claims, await this.mac(claims)]).toString('base64url')
    return { token, expire_at: new Date(expires_s * 1_000).toISOString().replace('Z', '000Z') }
  }

  /** @throws AnnalsError unauthorized: the same for each token that is not valid */
  async open(token: string): Promise<Asset> {
    const bytes = Buffer.from(TOKEN.test(token) ? token : '', 'base64url')
    const [claims, mac] = [bytes.subarray(0, CLAIMS_BYTES), bytes.subarray(CLAIMS_BYTES)]
    const expected = await this.mac(claims)
    const isOurs = mac.length === expected.length && timingSafeEqual(mac, expected)
    if (!isOurs || claims.readUIntBE(CLAIMS_BYTES - TIME_BYTES, TIME_BYTES) * 1_000 <= Date.now())
      throw new AnnalsError(
        'unauthorized',
        'The URL is not valid, or has expired. To get a new one, read the messages again with with_asset_public_url=true, or the file of the skill again.',
      )
    return {
      project_id: uuidAt(claims, 0),
      owner_id: uuidAt(claims, ID_BYTES),
      sha256: claims.toString('hex', 2 * ID_BYTES, 2 * ID_BYTES + HASH_BYTES),
    }
  }

  private async mac(claims: Buffer): Promise<Buffer> {
    this.secret ??= this.database.query(FIND_ASSET_URL_SECRET, []).then(([row]) => row!.secret!)
    const secret = await this.secret.catch((error) => {
      this.secret = undefined
      throw error
    })
    return createHmac('sha256', secret).update(claims).digest()
  }
}

function uuidAt(bytes: Buffer, at: number): string {
  const hex = bytes.toString('hex', at, at + ID_BYTES)
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
