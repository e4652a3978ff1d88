import { newId } from '@annals/kits/ids.js'
import type { Database, Queryable, Row } from '@annals/kits/postgres/database.js'
import { Remembered } from '@annals/kits/postgres/remembered.js'
import type { CryptoKey, JWK } from 'jose'
import {
  ADD_FIRST_SIGNING_KEY,
  ADD_SIGNING_KEY,
  FORGET_SIGNING_KEYS,
  LIST_SIGNING_KEYS,
  REPLACE_SIGNING_KEYS,
} from './access_queries.js'

export const ALGORITHM = 'EdDSA'

/** How soon unknown generations are looked up again: one may have been added by another node. */
const UNKNOWN_KEPT_MS = 1_000

interface SigningKey {
  generation: string
  installation: string
  secret: JWK
  signs: boolean
  /** Made when it is first used. */
  public: Promise<CryptoKey> | undefined
}

export class SigningKeys {
  private readonly all: Remembered<Map<string, SigningKey>>

  constructor(
    private readonly database: Queryable,
    kept_ms: number,
  ) {
    this.all = new Remembered(kept_ms, async () => keysOf(await database.query(LIST_SIGNING_KEYS, [])))
  }

  async verifies(generation: string): Promise<boolean> {
    return (await this.all.find('all')).has(generation)
  }

  async find(generation: unknown): Promise<{ installation: string; key: CryptoKey } | undefined> {
    if (typeof generation !== 'string') return undefined
    let found = (await this.all.find('all')).get(generation)
    const { read_at } = this.all.peek('all')!
    if (!found && performance.now() - read_at > UNKNOWN_KEPT_MS)
      found = (await this.all.readAgain('all')).get(generation)
    if (!found) return undefined
    const { kty, crv, x } = found.secret
    found.public ??= imported({ kty: kty!, crv: crv!, x: x! })
    return { installation: found.installation, key: await found.public }
  }

  /** The one that signs; the first is made when it is first needed. */
  async signer(): Promise<Pick<SigningKey, 'generation' | 'installation'> & { key: CryptoKey }> {
    let newest = newestOf(await this.all.find('all'))
    if (!newest) {
      await this.database.query(ADD_FIRST_SIGNING_KEY, [newId(), await newKey()])
      newest = newestOf(await this.all.readAgain('all'))!
    }
    return { ...newest, key: await imported(newest.secret) }
  }
}

function keysOf(rows: Row[]): Map<string, SigningKey> {
  return new Map(
    rows.map(({ generation, installation, secret, signs }) => [
      generation!,
      {
        generation: generation!,
        installation: installation!,
        secret: JSON.parse(secret!) as JWK,
        signs: signs === 't',
        public: undefined,
      },
    ]),
  )
}

function newestOf(keys: Map<string, SigningKey>): SigningKey | undefined {
  return [...keys.values()].filter(({ signs }) => signs).at(-1)
}

async function imported(jwk: JWK): Promise<CryptoKey> {
  const { importJWK } = await import('jose')
  return (await importJWK(jwk, ALGORITHM)) as CryptoKey
}

async function newKey(): Promise<string> {
  const { exportJWK, generateKeyPair } = await import('jose')
  const { privateKey } = await generateKeyPair(ALGORITHM, { extractable: true })
  return JSON.stringify(await exportJWK(privateKey))
}

/**
 * Has a new key sign from now on, and returns its generation. Tokens of the older ones stay valid, unless `at_once`: then
 * every node refuses them within 5 seconds.
 */
export async function rotateSigningKey(database: Database, at_once: boolean): Promise<number> {
  const secret = await newKey()
  return database.transaction(async (connection) => {
    const [row] = await connection.query(ADD_SIGNING_KEY, [newId(), secret])
    await connection.query(REPLACE_SIGNING_KEYS, [Number(row!.generation), at_once])
    await connection.query(FORGET_SIGNING_KEYS, [])
    return Number(row!.generation)
  })
}
