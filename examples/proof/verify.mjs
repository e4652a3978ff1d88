#!/usr/bin/env node
/**
 * Verifies an export of Annals, or the proof of one entry, as docs/proof.md specifies them, with Node alone.
 *
 * Usage: node verify.mjs <export.ndjson or proof.json> [anchors.ndjson] [--key <public key in hexadecimal>]
 * It prints what it found, a line each, and exits with 1 if that is anything.
 */
import { createHash, createPublicKey, verify } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'

const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest()

/** The canonical form of the JSON value that begins at `at`, and where it ends. Numbers stay as they are written. */
function canonical(text, at) {
  while (text.charCodeAt(at) <= 0x20) at++
  const first = text[at]
  if (first === '"') {
    const end = endOfString(text, at)
    return [JSON.stringify(JSON.parse(text.slice(at, end))), end]
  }
  if (first !== '{' && first !== '[') {
    let end = at
    while (end < text.length && !',]} \t\r\n'.includes(text[end])) end++
    return [text.slice(at, end), end]
  }
  const items = []
  for (at++; ; ) {
    while (text.charCodeAt(at) <= 0x20 || text[at] === ',' || text[at] === ':') at++
    if (text[at] === '}' || text[at] === ']') break
    const [item, end] = canonical(text, at)
    items.push(item)
    at = end
  }
  if (first === '[') return [`[${items.join(', ')}]`, at + 1]
  const members = new Map()
  for (let index = 0; index < items.length; index += 2) members.set(items[index], items[index + 1])
  const sorted = [...members].map(([name, value]) => ({ name, value, bytes: Buffer.from(JSON.parse(name)) }))
  sorted.sort((a, b) => a.bytes.length - b.bytes.length || Buffer.compare(a.bytes, b.bytes))
  return [`{${sorted.map(({ name, value }) => `${name}: ${value}`).join(', ')}}`, at + 1]
}

function endOfString(text, start) {
  for (let at = start + 1; ; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '"') return at + 1
  }
}

/** The members of a line, each in its canonical form. */
function membersOf(line) {
  const members = {}
  for (let at = line.indexOf('"'); at !== -1 && line[at] === '"'; ) {
    const end = endOfString(line, at)
    const [value, next] = canonical(line, line.indexOf(':', end) + 1)
    members[JSON.parse(line.slice(at, end))] = value
    at = line[next] === ',' ? line.indexOf('"', next) : -1
  }
  return members
}

function linkAfter(link, entry, members) {
  const content = ['type', 'role', 'format', 'key', 'occurred_at', 'data', 'meta'].map(
    (name) => members[name] ?? 'null',
  )
  return linkOf(link, entry, sha256(`[${content.join(', ')}]`))
}

const linkOf = (link, { seq, id, created_at, kind }, content_hash) =>
  sha256(link, `${seq}\n${id}\n${created_at}\n${kind}\n`, content_hash)

const genesis = (session, after_seq) =>
  sha256(`annals-proof-1\n${session.id}\n${after_seq}\n${session.forked_proof ?? ''}`)

const leafHash = ({ session_id, seq, head, state }) =>
  sha256('\0', `${session_id}\n${seq}\n${head}\n${state}\n`)

function merkleRoot(level) {
  if (level.length === 0) return sha256()
  while (level.length > 1) {
    const above = []
    for (let at = 0; at + 1 < level.length; at += 2) above.push(sha256('\x01', level[at], level[at + 1]))
    level = level.length % 2 ? [...above, level.at(-1)] : above
  }
  return level[0]
}

const statement = ({ project, nth, made_at, size, root, previous, public_key }) =>
  Buffer.from(`annals-anchor-1\n${[nth, project, made_at, size, root, previous, public_key].join('\n')}\n`)

function isSigned(anchor) {
  const x = Buffer.from(anchor.public_key, 'hex').toString('base64url')
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  return verify(null, statement(anchor), key, Buffer.from(anchor.signature, 'hex'))
}

function checkAnchors(anchors, keys, found) {
  let previous = '0'.repeat(64)
  for (const [index, anchor] of anchors.entries()) {
    const name = `anchor ${anchor.nth}`
    if (anchor.nth !== index + 1 || anchor.previous !== previous)
      found.push(`${name}: it does not follow the anchor before it`)
    previous = sha256(statement(anchor)).toString('hex')
    if (keys.length > 0 && !keys.includes(anchor.public_key))
      found.push(`${name}: it is signed with another key, ${anchor.public_key}`)
    if (!isSigned(anchor)) found.push(`${name}: its signature is not that of its statement`)
  }
}

/** The proof of one entry, as the API answers it on one line. */
function checkProof(text, anchors, keys, found) {
  const answer = JSON.parse(text)
  const proof = answer.data ?? answer
  const members = membersOf(answer.data ? membersOf(text).data : text)
  const { session_id, begins, forked_proof, entry, anchor } = proof
  const name = `session ${session_id}, seq ${entry.seq}`
  const before = begins
    ? genesis({ id: session_id, forked_proof }, entry.seq - 1)
    : Buffer.from(proof.before, 'hex')
  let link = linkAfter(before, entry, membersOf(members.entry))
  if (link.toString('hex') !== proof.link || before.toString('hex') !== proof.before)
    found.push(`${name}: it is not what was chained`)
  process.stdout.write(
    `1 entry, ${anchor ? `anchor ${anchor.statement.nth} signed with ${anchor.statement.public_key}` : 'no anchor'}\n`,
  )
  if (!anchor) return
  const { steps, leaf, path, statement: stated } = anchor
  if (steps === null)
    found.push(`${name}: the anchored head is too far away for one answer; verify an export`)
  let seq = entry.seq
  for (const step of steps ?? []) {
    if (step.seq !== ++seq) found.push(`${name}: an entry before the anchored head is missing`)
    link = linkOf(link, step, Buffer.from(step.content_sha256, 'hex'))
  }
  const isHead = leaf.session_id === session_id && leaf.seq === seq && leaf.head === link.toString('hex')
  if (steps !== null && (!isHead || leaf.state !== 'live'))
    found.push(`${name}: its chain does not lead to the head of anchor ${stated.nth}`)
  let root = leafHash(leaf)
  for (const { side, hash } of path) {
    const beside = Buffer.from(hash, 'hex')
    root = side === 'left' ? sha256('\x01', beside, root) : sha256('\x01', root, beside)
  }
  if (root.toString('hex') !== stated.root)
    found.push(`anchor ${stated.nth}: its root is not that of its leaves`)
  if (keys.length > 0 && !keys.includes(stated.public_key))
    found.push(`anchor ${stated.nth}: it is signed with another key, ${stated.public_key}`)
  if (!isSigned(stated)) found.push(`anchor ${stated.nth}: its signature is not that of its statement`)
  if (anchors && !anchors.some((one) => statement(one).equals(statement(stated))))
    found.push(`anchor ${stated.nth}: the anchor file does not have it`)
}

async function main(exportPath, anchorsPath, keys) {
  const found = []
  const anchors = []
  if (anchorsPath)
    for await (const text of createInterface({ input: createReadStream(anchorsPath) }))
      anchors.push(JSON.parse(text))
  checkAnchors(anchors, keys, found)
  const sessions = new Map()
  const links = new Set()
  let header
  let session
  let link
  for await (const text of createInterface({
    input: createReadStream(exportPath),
    crlfDelay: Number.POSITIVE_INFINITY,
  })) {
    const line = JSON.parse(text)
    header ??= line
    if (header.annals_export === undefined) {
      checkProof(text, anchorsPath && anchors, keys, found)
      return found
    }
    if (line.kind === 'session') {
      session = line
      link = undefined
      sessions.set(line.id, line.created_at)
    } else if (line.kind === 'event' || line.kind === 'message') {
      const name = `session ${line.session_id}, seq ${line.seq}`
      if (line.proof === undefined) {
        if (link) found.push(`${name}: it has no link, and those before it have`)
        continue
      }
      const expected = linkAfter(link ?? genesis(session, line.seq - 1), line, membersOf(text)).toString(
        'hex',
      )
      if (expected !== line.proof || line.session_id !== session.id)
        found.push(`${name}: it is not what was chained`)
      link = Buffer.from(line.proof, 'hex')
      links.add(`${line.session_id} ${line.seq} ${line.proof}`)
    }
  }
  for (const { nth, project, made_at, size, root, leaves } of anchors) {
    if (leaves.length !== size || merkleRoot(leaves.map(leafHash)).toString('hex') !== root)
      found.push(`anchor ${nth}: its root is not that of its leaves`)
    if (project !== header.project_id || made_at > header.exported_at) continue
    for (const { session_id, seq, head, state } of leaves) {
      // A session that is gone was erased; one that was created later under the same id is another one.
      const created_at = sessions.get(session_id) ?? '~'
      if (state === 'live' && created_at <= made_at && !links.has(`${session_id} ${seq} ${head}`))
        found.push(`session ${session_id}, seq ${seq}: its log does not have the head of anchor ${nth}`)
    }
  }
  const signers = [...new Set(anchors.map(({ public_key }) => public_key))].sort()
  process.stdout.write(
    `${sessions.size} sessions, ${links.size} links, ${anchors.length} anchors signed with ${signers.join(', ') || 'no key'}\n`,
  )
  return found
}

const keys = []
const paths = process.argv.slice(2)
for (let at = paths.indexOf('--key'); at !== -1; at = paths.indexOf('--key'))
  keys.push(paths.splice(at, 2)[1])
if (paths.length < 1 || paths.length > 2) {
  process.stderr.write(
    'Usage: node verify.mjs <export.ndjson or proof.json> [anchors.ndjson] [--key <public key in hexadecimal>]\n',
  )
  process.exit(2)
}
const found = await main(paths[0], paths[1], keys)
process.stdout.write(`${found.join('\n') || 'Nothing was found.'}\n`)
process.exitCode = found.length > 0 ? 1 : 0
