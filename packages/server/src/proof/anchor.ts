import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { StartError } from '@annals/kits/errors.js'

/** The head of a session's chain at one moment. `erased`: the session was gone then, and this was anchored last. */
export interface Leaf {
  session_id: string
  seq: number
  head: string
  state: 'live' | 'erased'
}

/** The statement that an anchor's signature covers. */
export interface Statement {
  nth: number
  project: string
  made_at: string
  size: number
  root: string
  previous: string
  public_key: string
}

/** A line of an anchor file: docs/proof.md specifies it. */
export interface Anchor extends Statement {
  signature: string
  leaves: Leaf[]
}

/** The anchor that another one follows: its number, and the hash of its statement. */
export interface Before {
  nth: number
  previous: string
}

export const FIRST: Before = { nth: 0, previous: '0'.repeat(64) }
const HASH_BYTES = 32

export function hashOf(...parts: Array<string | Buffer>): Buffer {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

function levelsOf(leaves: readonly Leaf[]): Buffer[][] {
  let level = leaves.map(({ session_id, seq, head, state }) =>
    hashOf('\0', `${session_id}\n${seq}\n${head}\n${state}\n`),
  )
  const levels = [level.length === 0 ? [hashOf()] : level]
  while (level.length > 1) {
    const above: Buffer[] = []
    for (let at = 0; at + 1 < level.length; at += 2) above.push(hashOf('\x01', level[at]!, level[at + 1]!))
    level = level.length % 2 === 1 ? [...above, level.at(-1)!] : above
    levels.push(level)
  }
  return levels
}

function rootOf(leaves: readonly Leaf[]): string {
  return levelsOf(leaves).at(-1)![0]!.toString('hex')
}

/** Of each leaf, the hashes beside its way to the root, from the leaf up. */
export function pathsOf(leaves: readonly Leaf[]): Buffer[] {
  const levels = levelsOf(leaves)
  return leaves.map((_leaf, place) => {
    const siblings = levels.map((level, depth) => level[(place >> depth) ^ 1])
    return Buffer.concat(siblings.filter((sibling) => sibling !== undefined))
  })
}

/** A path as an answer has it: each hash, and on which side of the hash so far it stands. */
export function pathSteps(path: Buffer, place: number, size: number) {
  const steps: Array<{ side: 'left' | 'right'; hash: string }> = []
  for (let [at, width, from] = [place, size, 0]; width > 1; at >>= 1, width = (width + 1) >> 1) {
    if ((at ^ 1) >= width) continue
    steps.push({
      side: at % 2 === 1 ? 'left' : 'right',
      hash: path.toString('hex', from, from + HASH_BYTES),
    })
    from += HASH_BYTES
  }
  return steps
}

function statementText(anchor: Statement): string {
  const { nth, project, made_at, size, root, previous, public_key } = anchor
  return `annals-anchor-1\n${[nth, project, made_at, size, root, previous, public_key].join('\n')}\n`
}

/** The hash that the next anchor names. */
export function after(anchor: Statement): Before {
  return { nth: anchor.nth, previous: hashOf(statementText(anchor)).toString('hex') }
}

/** In hexadecimal. */
export function publicKeyOf(key: KeyObject): string {
  return Buffer.from(createPublicKey(key).export({ format: 'jwk' }).x!, 'base64url').toString('hex')
}

/** Signs leaves as the anchor after another one. Call it after the heads were read: an export that is begun later has them. */
export function signAnchor(
  key: KeyObject,
  project: string,
  leaves: Leaf[],
  { nth, previous }: Before,
): Anchor {
  const stated: Statement = {
    nth: nth + 1,
    project,
    made_at: new Date().toISOString(),
    size: leaves.length,
    root: rootOf(leaves),
    previous,
    public_key: publicKeyOf(key),
  }
  const signature = sign(null, Buffer.from(statementText(stated)), key).toString('hex')
  return { ...stated, signature, leaves }
}

/** Returns the fault of an anchor that follows another one, or undefined. */
function wrongWith(anchor: Anchor, before: Before): string | undefined {
  if (anchor.nth !== before.nth + 1 || anchor.previous !== before.previous)
    return 'it does not follow the anchor before it'
  if (anchor.leaves.length !== anchor.size || rootOf(anchor.leaves) !== anchor.root)
    return 'its root is not that of its leaves'
  const x = Buffer.from(anchor.public_key, 'hex').toString('base64url')
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  return verify(null, Buffer.from(statementText(anchor)), key, Buffer.from(anchor.signature, 'hex'))
    ? undefined
    : 'its signature is not that of its statement'
}

/** Reads an anchor file; one that is not there has none. @throws StartError if a line is no anchor */
export async function readAnchors(
  path: string,
): Promise<{ anchors: Anchor[]; wrong: Array<{ nth: number; reason: string }> }> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw new StartError(`The anchors cannot be read: ${error.message}.`)
  })
  const anchors: Anchor[] = []
  const wrong: Array<{ nth: number; reason: string }> = []
  for (const [index, line] of text.split('\n').entries()) {
    if (line === '') continue
    try {
      const anchor = JSON.parse(line) as Anchor
      const reason = wrongWith(anchor, anchors.length > 0 ? after(anchors.at(-1)!) : FIRST)
      if (reason) wrong.push({ nth: anchor.nth, reason })
      anchors.push(anchor)
    } catch {
      throw new StartError(`Line ${index + 1} of ${path} is not an anchor. Restore it from a copy.`)
    }
  }
  return { anchors, wrong }
}

/** The key in a file, which is made if it is not there: Ed25519 as PKCS #8 in PEM. @throws StartError */
export async function readKey(path: string): Promise<KeyObject> {
  try {
    const key = createPrivateKey(await readFile(path))
    if (key.asymmetricKeyType === 'ed25519') return key
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      throw new StartError(`${path} has no private key: ${(error as Error).message}.`)
    const { privateKey } = generateKeyPairSync('ed25519')
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' })
    await writeFile(path, pem, { mode: 0o600, flag: 'wx' }).catch((failure: NodeJS.ErrnoException) => {
      if (failure.code !== 'EEXIST')
        throw new StartError(`The key ${path} cannot be made: ${failure.message}.`)
    })
    // Another process may have been faster.
    return createPrivateKey(await readFile(path))
  }
  throw new StartError(
    `The key in ${path} is not Ed25519. Name another file; it is created if it does not exist.`,
  )
}
