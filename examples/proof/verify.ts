/**
 * Verifies an export of Annals, or the proof of one entry, as docs/proof.md specifies them, with Node alone (22.18).
 *
 * Usage: node verify.ts <export.ndjson or proof.json> [anchors.ndjson] [--key <public key in hexadecimal>]
 * It prints what it found, a line each, and exits with 1 if that is anything.
 */
import { createHash, createPublicKey, randomUUID, verify } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'

// biome-ignore lint/suspicious/noExplicitAny: what is verified may be anything
type Fields = Record<string, any>

const sha256 = (...parts: Array<string | Buffer>) =>
  parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest()
const bytes = (hex: unknown) => Buffer.from(String(hex), 'hex')
const lines = (fields: Fields, names: string) => names.replace(/\w+ ?/g, (name) => `${fields[name.trim()]}\n`)

/** Stands before the digits of numbers, which lose some of them when JavaScript parses them. */
const NUMBER = randomUUID()

function parseExactly(text: string) {
  let isInString = false
  const marked = text.replace(/\\.|"|-?\d[\d.eE+-]*/g, (one) => {
    if (one === '"') isInString = !isInString
    return isInString || one === '"' ? one : `"${NUMBER}${one}"`
  })
  return JSON.parse(marked)
}

function canonical(value: unknown): string {
  if (typeof value === 'string')
    return value.startsWith(NUMBER) ? value.slice(NUMBER.length) : JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonical).join(', ')}]`
  if (typeof value !== 'object' || value === null) return String(value)
  const members = Object.entries(value).map(([name, inner]) => [Buffer.from(name), name, inner] as const)
  members.sort(([one], [other]) => one.length - other.length || Buffer.compare(one, other))
  return `{${members.map(([, name, inner]) => `${JSON.stringify(name)}: ${canonical(inner)}`).join(', ')}}`
}

const contentHash = (entry: Fields) =>
  sha256(
    canonical(
      ['type', 'role', 'format', 'key', 'occurred_at', 'data', 'meta'].map((name) => entry[name] ?? null),
    ),
  )
const linkAfter = (link: Buffer, entry: Fields, content_hash: Buffer) =>
  sha256(link, lines(entry, 'seq id created_at kind'), content_hash)
const genesis = (session_id: unknown, seq: number, forked_proof: unknown) =>
  sha256(`annals-proof-1\n${session_id}\n${seq - 1}\n${forked_proof ?? ''}`)
const leafHash = (leaf: Fields) => sha256('\0', lines(leaf, 'session_id seq head state'))
const nodeHash = (left: Buffer, right: Buffer) => sha256('\x01', left, right)
const statement = (anchor: Fields) =>
  `annals-anchor-1\n${lines(anchor, 'nth project made_at size root previous public_key')}`

function rootOf(hashes: Buffer[]): Buffer {
  if (hashes.length < 2) return hashes[0] ?? sha256()
  const half = 2 ** Math.ceil(Math.log2(hashes.length) - 1)
  return nodeHash(rootOf(hashes.slice(0, half)), rootOf(hashes.slice(half)))
}

const found: string[] = []
const expect = (holds: boolean, finding: string) => holds || found.push(finding)
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { key: { type: 'string', multiple: true } },
})
const [path, anchors_path] = positionals
if (path === undefined)
  throw new Error('Usage: node verify.ts <export or proof> [anchors.ndjson] [--key <hexadecimal>]')

function checkSignature(anchor: Fields) {
  const { nth, public_key, signature } = anchor
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: bytes(public_key).toString('base64url') }
  const signed = verify(
    null,
    Buffer.from(statement(anchor)),
    createPublicKey({ key: jwk, format: 'jwk' }),
    bytes(signature),
  )
  expect(signed, `anchor ${nth}: its signature is not that of its statement`)
  expect(
    values.key?.includes(public_key) ?? true,
    `anchor ${nth}: it is signed with another key, ${public_key}`,
  )
}

const anchors: Fields[] = []

async function checkAnchors(path: string) {
  let previous = '0'.repeat(64)
  for await (const text of createInterface(createReadStream(path))) {
    const anchor: Fields = JSON.parse(text)
    const { nth, leaves, size, root } = anchor
    const follows = anchors.push(anchor) === nth && anchor.previous === previous
    expect(follows, `anchor ${nth}: it does not follow the anchor before it`)
    previous = sha256(statement(anchor)).toString('hex')
    checkSignature(anchor)
    const isRoot = leaves.length === size && rootOf(leaves.map(leafHash)).equals(bytes(root))
    expect(isRoot, `anchor ${nth}: its root is not that of its leaves`)
  }
}

/** The proof of one entry: a chain from the entry to a head, and a path from there to a root that was signed. */
function checkProof(proof: Fields, exact: Fields) {
  const { session_id, begins, forked_proof, entry, before, link, anchor } = proof
  const name = `session ${session_id}, seq ${entry.seq}`
  const start = begins ? genesis(session_id, entry.seq, forked_proof) : bytes(before)
  let head = linkAfter(start, entry, contentHash((exact.data ?? exact).entry))
  expect(head.equals(bytes(link)) && start.equals(bytes(before)), `${name}: it is not what was chained`)
  if (!anchor) return '1 entry, no anchor'
  const { steps, leaf, path, statement: stated } = anchor
  let { seq } = entry
  for (const step of steps ?? []) {
    expect(step.seq === ++seq, `${name}: an entry before the anchored head is missing`)
    head = linkAfter(head, step, bytes(step.content_sha256))
  }
  const isHead =
    lines(leaf, 'session_id seq head state') === `${session_id}\n${seq}\n${head.toString('hex')}\nlive\n`
  if (!steps) found.push(`${name}: the anchored head is too far away for one answer; verify an export`)
  else expect(isHead, `${name}: its chain does not lead to the head of anchor ${stated.nth}`)
  let root = leafHash(leaf)
  for (const { side, hash } of path)
    root = side === 'left' ? nodeHash(bytes(hash), root) : nodeHash(root, bytes(hash))
  expect(root.equals(bytes(stated.root)), `anchor ${stated.nth}: its root is not that of its leaves`)
  checkSignature(stated)
  const isKept = anchors_path === undefined || anchors.some((one) => statement(one) === statement(stated))
  expect(isKept, `anchor ${stated.nth}: the anchor file does not have it`)
  return `1 entry, anchor ${stated.nth} signed with ${stated.public_key}`
}

/** An export: the chain of each session, and of the anchors that were made before it the heads. */
async function checkExport() {
  const sessions = new Map<string, string>()
  const links = new Set<string>()
  let header: Fields = {}
  let session: Fields = {}
  let link: Buffer | undefined
  for await (const text of createInterface(createReadStream(path!))) {
    const line = JSON.parse(text)
    if (!header.annals_export) header = line
    if (!header.annals_export) return checkProof(line.data ?? line, parseExactly(text))
    if (line.kind === 'session') {
      session = line
      link = undefined
      sessions.set(line.id, line.created_at)
    }
    if (line.kind !== 'event' && line.kind !== 'message') continue
    const name = `session ${line.session_id}, seq ${line.seq}`
    if (line.proof === undefined) {
      expect(link === undefined, `${name}: it has no link, and those before it have`)
      continue
    }
    const start = link ?? genesis(session.id, line.seq, session.forked_proof)
    const expected = linkAfter(start, line, contentHash(parseExactly(text)))
    link = bytes(line.proof)
    expect(expected.equals(link) && line.session_id === session.id, `${name}: it is not what was chained`)
    links.add(`${line.session_id} ${line.seq} ${line.proof}`)
  }
  for (const { nth, project, made_at, leaves } of anchors)
    for (const { session_id, seq, head, state } of leaves) {
      // A session that is gone was erased; one that was created later under the same id is another one.
      const created_at = state === 'live' ? (sessions.get(session_id) ?? '~') : '~'
      if (project !== header.project_id || made_at > header.exported_at || created_at > made_at) continue
      const isThere = links.has(`${session_id} ${seq} ${head}`)
      expect(isThere, `session ${session_id}, seq ${seq}: its log does not have the head of anchor ${nth}`)
    }
  const signers = [...new Set(anchors.map(({ public_key }) => public_key))].sort().join(', ') || 'no key'
  return `${sessions.size} sessions, ${links.size} links, ${anchors.length} anchors signed with ${signers}`
}

async function main() {
  if (anchors_path !== undefined) await checkAnchors(anchors_path)
  process.stdout.write(`${await checkExport()}\n${found.join('\n') || 'Nothing was found.'}\n`)
  process.exitCode = found.length > 0 ? 1 : 0
}

main()
