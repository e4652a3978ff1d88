/**
 * Verifies an export of Annals together with anchors, or the proof of one entry, as docs/proof.md specifies
 * them, with Node alone (22.18). verify.ts must be beside it.
 * Usage: node anchors.ts <export.ndjson or proof.json> [anchors.ndjson] [--key <public key in hexadecimal>]
 * It prints what it found, a line each, and exits with 1 if that is anything.
 */
import { createPublicKey, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import {
  bytes,
  checkExport,
  contentHash,
  type Fields,
  genesis,
  type Log,
  lines,
  linesOf,
  linkAfter,
  parseExactly,
  readOf,
  report,
  sha256,
} from './verify.ts'

type Keys = string[] | undefined

const leafHash = (leaf: Fields) => sha256('\0', lines(leaf, 'session_id seq head state'))
const nodeHash = (left: Buffer, right: Buffer) => sha256('\x01', left, right)
const statement = (anchor: Fields) =>
  `annals-anchor-1\n${lines(anchor, 'nth project made_at size root previous public_key')}`

function rootOf(hashes: Buffer[]): Buffer {
  if (hashes.length < 2) return hashes[0] ?? sha256()
  const half = 2 ** Math.ceil(Math.log2(hashes.length) - 1)
  return nodeHash(rootOf(hashes.slice(0, half)), rootOf(hashes.slice(half)))
}

function checkSignature(anchor: Fields, keys: Keys, found: string[]) {
  const { nth, public_key, signature } = anchor
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: bytes(public_key).toString('base64url') }
  const key = createPublicKey({ key: jwk, format: 'jwk' })
  if (!verify(null, Buffer.from(statement(anchor)), key, bytes(signature)))
    found.push(`anchor ${nth}: its signature is not that of its statement`)
  if (keys && !keys.includes(public_key))
    found.push(`anchor ${nth}: it is signed with another key, ${public_key}`)
}

async function readAnchors(path: string, keys: Keys, found: string[]) {
  const anchors: Fields[] = []
  for await (const text of linesOf(path)) anchors.push(JSON.parse(text))
  let previous = '0'.repeat(64)
  for (const [at, anchor] of anchors.entries()) {
    const { nth, leaves, size, root } = anchor
    if (nth !== at + 1 || anchor.previous !== previous)
      found.push(`anchor ${nth}: it does not follow the anchor before it`)
    previous = sha256(statement(anchor)).toString('hex')
    checkSignature(anchor, keys, found)
    if (leaves.length !== size || !rootOf(leaves.map(leafHash)).equals(bytes(root)))
      found.push(`anchor ${nth}: its root is not that of its leaves`)
  }
  return anchors
}

/** Looks for the heads that were anchored before the export was made. */
function checkHeads({ header, created_at, links }: Log, anchors: Fields[], found: string[]) {
  for (const { nth, project, made_at, leaves } of anchors) {
    if (project !== header?.project_id || made_at > header?.exported_at) continue
    for (const { session_id, seq, head, state } of leaves) {
      // A session that is gone was erased; one that was created later under the same id is another one.
      if (state !== 'live' || (created_at.get(session_id) ?? '~') > made_at) continue
      if (!links.has(`${session_id} ${seq} ${head}`))
        found.push(`session ${session_id}, seq ${seq}: its log does not have the head of anchor ${nth}`)
    }
  }
  const signers = [...new Set(anchors.map(({ public_key }) => public_key))].sort().join(', ') || 'no key'
  return `${anchors.length} anchors signed with ${signers}`
}

/** Follows a chain from an entry to a head, and a path from there to a root that was signed. */
function checkProof(text: string, anchors: Fields[] | undefined, keys: Keys, found: string[]) {
  const [answer, exact] = [JSON.parse(text), parseExactly(text)]
  const { session_id, begins, forked_proof, entry, before, link, anchor } = answer.data ?? answer
  const name = `session ${session_id}, seq ${entry.seq}`
  const start = begins ? genesis(session_id, entry.seq, forked_proof) : bytes(before)
  let head = linkAfter(start, entry, contentHash((exact.data ?? exact).entry))
  if (!head.equals(bytes(link)) || !start.equals(bytes(before)))
    found.push(`${name}: it is not what was chained`)
  if (!anchor) return 'no anchor'
  const { steps, leaf, path, statement: stated } = anchor
  let { seq } = entry
  for (const step of steps ?? []) {
    if (step.seq !== ++seq) found.push(`${name}: an entry before the anchored head is missing`)
    head = linkAfter(head, step, bytes(step.content_sha256))
  }
  const stated_head = `${session_id}\n${seq}\n${head.toString('hex')}\nlive\n`
  if (!steps) found.push(`${name}: the anchored head is too far away for one answer; verify an export`)
  else if (lines(leaf, 'session_id seq head state') !== stated_head)
    found.push(`${name}: its chain does not lead to the head of anchor ${stated.nth}`)
  let root = leafHash(leaf)
  for (const { side, hash } of path)
    root = side === 'left' ? nodeHash(bytes(hash), root) : nodeHash(root, bytes(hash))
  if (!root.equals(bytes(stated.root))) found.push(`anchor ${stated.nth}: its root is not that of its leaves`)
  checkSignature(stated, keys, found)
  if (anchors && !anchors.some((one) => statement(one) === statement(stated)))
    found.push(`anchor ${stated.nth}: the anchor file does not have it`)
  return `anchor ${stated.nth} signed with ${stated.public_key}`
}

async function main() {
  const options = { key: { type: 'string', multiple: true } } as const
  const { values, positionals } = parseArgs({ allowPositionals: true, options })
  const [path, file] = positionals
  if (!path)
    throw new Error('Usage: node anchors.ts <export or proof> [anchors.ndjson] [--key <hexadecimal>]')
  const found: string[] = []
  const log = await checkExport(path, found)
  const anchors = file ? await readAnchors(file, values.key, found) : undefined
  if (log.header) report(`${readOf(log)}, ${checkHeads(log, anchors ?? [], found)}`, found)
  else report(`1 entry, ${checkProof(readFileSync(path, 'utf8'), anchors, values.key, found)}`, found)
}

main()
