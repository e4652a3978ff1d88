import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto'
import { open, readFile, writeFile } from 'node:fs/promises'
import { StartError } from 'annals/dist/errors.js'
import type { Database, Queryable } from 'annals/dist/postgres/database.js'
import { planned } from 'annals/dist/postgres/statement.js'

/** The head of a session's chain at one moment. `erased`: the session was gone then, and this was anchored last. */
interface Leaf {
  session_id: string
  seq: number
  head: string
  state: 'live' | 'erased'
}

/** A line of an anchor file: docs/proof.md specifies it. */
export interface Anchor {
  nth: number
  project: string
  made_at: string
  size: number
  root: string
  previous: string
  public_key: string
  signature: string
  leaves: Leaf[]
}

/** The chained heads of a project. Parameters: $1 project, $2 id to start after or null, $3 how many. */
const READ_HEADS = planned(
  'read_chained_heads',
  `SELECT h.session_id, h.last_seq, encode(h.proof, 'hex') AS head FROM session_heads h
WHERE h.project_id = $1 AND h.proof IS NOT NULL AND ($2::uuid IS NULL OR h.session_id > $2)
ORDER BY h.session_id LIMIT $3`,
)

const LIST_PROJECTS_TO_ANCHOR = planned(
  'list_projects_to_anchor',
  'SELECT p.id FROM projects p ORDER BY p.id',
)

const HEADS_AT_ONCE = 1_000
const FIRST = '0'.repeat(64)

function hashOf(...parts: Array<string | Buffer>): Buffer {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

function rootOf(leaves: readonly Leaf[]): string {
  let level = leaves.map(({ session_id, seq, head, state }) =>
    hashOf('\0', `${session_id}\n${seq}\n${head}\n${state}\n`),
  )
  if (level.length === 0) return hashOf().toString('hex')
  while (level.length > 1) {
    const above: Buffer[] = []
    for (let at = 0; at + 1 < level.length; at += 2) above.push(hashOf('\x01', level[at]!, level[at + 1]!))
    level = level.length % 2 === 1 ? [...above, level.at(-1)!] : above
  }
  return level[0]!.toString('hex')
}

function statementOf(anchor: Omit<Anchor, 'signature' | 'leaves'>): string {
  const { nth, project, made_at, size, root, previous, public_key } = anchor
  return `annals-anchor-1\n${[nth, project, made_at, size, root, previous, public_key].join('\n')}\n`
}

/** What is wrong with an anchor that follows another one; undefined: nothing. */
function wrongWith(anchor: Anchor, before: Anchor | undefined): string | undefined {
  if (anchor.nth !== (before?.nth ?? 0) + 1 || anchor.previous !== nextOf(before))
    return 'it does not follow the anchor before it'
  if (anchor.leaves.length !== anchor.size || rootOf(anchor.leaves) !== anchor.root)
    return 'its root is not that of its leaves'
  const x = Buffer.from(anchor.public_key, 'hex').toString('base64url')
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  return verify(null, Buffer.from(statementOf(anchor)), key, Buffer.from(anchor.signature, 'hex'))
    ? undefined
    : 'its signature is not that of its statement'
}

function nextOf(before: Anchor | undefined): string {
  return before ? hashOf(statementOf(before)).toString('hex') : FIRST
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
      const reason = wrongWith(anchor, anchors.at(-1))
      if (reason) wrong.push({ nth: anchor.nth, reason })
      anchors.push(anchor)
    } catch {
      throw new StartError(`Line ${index + 1} of ${path} is not an anchor.`)
    }
  }
  return { anchors, wrong }
}

/** The last leaf of each session of a project. */
function lastLeaves(anchors: readonly Anchor[], project: string): Map<string, Leaf> {
  const last = new Map<string, Leaf>()
  for (const anchor of anchors)
    if (anchor.project === project) for (const leaf of anchor.leaves) last.set(leaf.session_id, leaf)
  return last
}

/** The key in a file, which is made if it is not there: PKCS #8 in PEM. */
export async function readKey(path: string): Promise<KeyObject> {
  try {
    return createPrivateKey(await readFile(path))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      throw new StartError(`${path} has no private key: ${(error as Error).message}.`)
    const { privateKey } = generateKeyPairSync('ed25519')
    await writeFile(path, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600, flag: 'wx' })
    return privateKey
  }
}

/**
 * Appends a signed anchor to a file for each project in which something was chained or erased since. Returns them.
 * @throws StartError if the file is not as it was written
 */
export async function anchorHeads(database: Database, path: string, key: KeyObject): Promise<Anchor[]> {
  const { anchors, wrong } = await readAnchors(path)
  if (wrong.length > 0)
    throw new StartError(`Anchor ${wrong[0]!.nth} of ${path} is not as it was written: ${wrong[0]!.reason}.`)
  const projects = (await database.query(LIST_PROJECTS_TO_ANCHOR, [])).map(({ id }) => id!)
  const all = new Set([...projects, ...anchors.map(({ project }) => project)])
  const made: Anchor[] = []
  const { x } = createPublicKey(key).export({ format: 'jwk' })
  for (const project of all) {
    const leaves = await changedLeaves(database, project, lastLeaves(anchors, project))
    if (leaves.length === 0) continue
    const before = made.at(-1) ?? anchors.at(-1)
    const stated = {
      nth: (before?.nth ?? 0) + 1,
      project,
      // After the heads were read: an export that is begun later has them.
      made_at: new Date().toISOString(),
      size: leaves.length,
      root: rootOf(leaves),
      previous: nextOf(before),
      public_key: Buffer.from(x!, 'base64url').toString('hex'),
    }
    made.push({
      ...stated,
      signature: sign(null, Buffer.from(statementOf(stated)), key).toString('hex'),
      leaves,
    })
  }
  if (made.length > 0) await appendLines(path, made)
  return made
}

async function appendLines(path: string, anchors: Anchor[]): Promise<void> {
  const file = await open(path, 'a', 0o644)
  try {
    await file.writeFile(anchors.map((anchor) => `${JSON.stringify(anchor)}\n`).join(''))
    await file.sync()
  } finally {
    await file.close()
  }
}

async function changedLeaves(
  database: Queryable,
  project: string,
  known: Map<string, Leaf>,
): Promise<Leaf[]> {
  const leaves: Leaf[] = []
  const gone = new Set(
    [...known.values()].filter(({ state }) => state === 'live').map(({ session_id }) => session_id),
  )
  for (let after: string | null = null; ; ) {
    const rows: Array<Record<string, string | null>> = await database.query(READ_HEADS, [
      project,
      after,
      HEADS_AT_ONCE,
    ])
    for (const { session_id, last_seq, head } of rows) {
      gone.delete(session_id!)
      const before = known.get(session_id!)
      if (before?.state === 'live' && before.head === head) continue
      leaves.push({ session_id: session_id!, seq: Number(last_seq), head: head!, state: 'live' })
    }
    if (rows.length < HEADS_AT_ONCE) break
    after = rows.at(-1)!.session_id!
  }
  for (const id of gone) leaves.push({ ...known.get(id)!, state: 'erased' })
  return leaves
}
