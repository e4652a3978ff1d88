import { StringDecoder } from 'node:string_decoder'
import { notFound } from '@annals/kits/errors.js'
import { logReadBytes, sendChunks } from '@annals/kits/http/answer/answer.js'
import { encoded } from '@annals/kits/http/request/find_base64.js'
import type { Tenant } from '@annals/kits/postgres/database.js'
import { type Base64Lines, lacksBytes, lineBreaker, linesOf } from '@annals/messages'
import { endOfString } from '@annals/messages/json'
import type { FastifyReply } from 'fastify'
import { findBlobs, readBlob } from './blob_store.js'
import type { PublicUrls } from './public_urls.js'

/**
 * What stands for bytes in JSON:
 * - a mark, an escaped U+0000 and the blob's hash: for base64, with `t` for the text itself, with `u` and `v` for URL-safe
 *   base64, and in a string of its own with `n` for the number of bytes. After another backslash, a caller wrote it.
 * - a reference to bytes that were sent as base64, as PostgreSQL writes it. It is no part of a string: there, quotes are
 *   escaped.
 * - the beginning of a text with such references.
 */
const BYTES =
  /"\\u0000n(?<sized>[0-9a-f]{64})"|(?<!\\)\\u0000(?:x\d+x)?(?<as>[tuv]?)(?:(?<broken>\d+)w(?<width>\d+)w)?(?<marked>[0-9a-f]{64})|\{(?:"encoding": "(?<encoding>base64url(?:-unpadded)?)", )?"media_type": "(?:[^"\\]|\\.)*", "annals_blob": "(?<sha256>[0-9a-f]{64})", "annals_inline": "(?<prefix>[^"\\]*)"\}|(?<text>\{"annals_text": \[)/g
/** A reference in a text. */
const IN_TEXT =
  /\{(?:"break": "(\\+[rn](?:\\+n)?)", )?"bytes": \d+, (?:"width": (\d+), )?(?:"encoding": "(base64url(?:-unpadded)?)", )?"media_type": "(?:[^"\\]|\\.)*", "annals_blob": "([0-9a-f]{64})", "annals_inline": "([^"\\]*)"\}/y

type Encoding = Parameters<typeof encoded>[1]
const ENCODINGS: Readonly<Record<string, Encoding>> = { u: 'base64url', v: 'base64url-unpadded' }

/** Answers with entries, with the bytes of blobs in place; see answerChunks. */
export async function answerEntries(
  reply: FastifyReply,
  chunks: AsyncIterable<string>,
  urls?: PublicUrls,
): Promise<FastifyReply> {
  await reply.request.memory.hold(logReadBytes(reply.request))
  return sendEntries(reply, chunks, urls)
}

export function sendEntries(
  reply: FastifyReply,
  chunks: AsyncIterable<string>,
  urls?: PublicUrls,
): Promise<FastifyReply> {
  // Whether there is a blob, and its URL, change without the log.
  const onBytes = () => reply.removeHeader('etag')
  return sendChunks(reply, withBlobBytes(reply.request, chunks, urls, onBytes))
}

/**
 * Puts the bytes of blobs, as base64, where texts of JSON have marks of them or inline references: a chunk at a time, so
 * that no more than one is in memory. @throws AnnalsError blob_not_found
 */
export async function* withBlobBytes(
  tenant: Tenant,
  texts: AsyncIterable<string> | Iterable<string>,
  urls?: PublicUrls,
  onBytes?: () => void,
): AsyncGenerator<string> {
  for await (const text of texts) {
    if (!lacksBytes(text)) {
      yield text
      continue
    }
    onBytes?.()
    let at = 0
    for (const { 0: found, index, groups } of text.matchAll(BYTES)) {
      const { sized, as, marked, sha256 = marked ?? sized!, prefix, encoding, broken, width } = groups!
      if (index < at) continue
      yield text.slice(at, index)
      at = index + found.length
      if (groups!.text !== undefined) {
        const written = await textWithBytes(tenant, text, at)
        yield* written?.pieces ?? [found]
        at = written?.end ?? at
        continue
      }
      const blob = (await findBlobs(tenant, [sha256])).get(sha256)
      // Something like it in a message's meta refers to nothing.
      if (!blob && prefix === undefined) throw notFound('blob')
      if (blob) await urls?.show(sha256)
      if (!blob) yield found
      else if (sized !== undefined) yield String(blob.bytes)
      else if (prefix !== undefined) {
        yield `"${prefix}`
        yield* base64Of(readBlob(tenant, blob), encoding as Encoding)
        yield '"'
      } else if (as === 't') yield* textOf(readBlob(tenant, blob))
      else {
        const lines = broken === undefined ? undefined : { break: Number(broken), width: Number(width) }
        yield* base64Of(readBlob(tenant, blob), ENCODINGS[as ?? ''], lines)
      }
    }
    yield text.slice(at)
  }
}

/**
 * The text with base64 whose pieces, strings and references, stand from `at` on, as a JSON string in pieces; undefined if it
 * is something else, or refers to what is not there.
 */
async function textWithBytes(tenant: Tenant, json: string, at: number) {
  const pieces: Array<string | RegExpExecArray> = []
  for (let end = at; ; end += 2) {
    const from = end
    IN_TEXT.lastIndex = from
    const reference = json[from] === '"' ? null : IN_TEXT.exec(json)
    end = reference ? IN_TEXT.lastIndex : json[from] === '"' ? endOfString(json, from) : from
    if (end === from) return undefined
    pieces.push(reference ?? json.slice(from + 1, end - 1))
    if (json.startsWith(']}', end)) return withBase64(tenant, pieces, end + 2)
    if (!json.startsWith(', ', end)) return undefined
  }
}

async function withBase64(tenant: Tenant, pieces: ReadonlyArray<string | RegExpExecArray>, end: number) {
  const known = pieces.map((piece) => (typeof piece === 'string' ? piece : referenceOf(piece)))
  const hashes = known.flatMap((piece) => (typeof piece === 'object' ? piece.sha256 : []))
  const blobs = await findBlobs(tenant, hashes)
  if (known.includes(undefined) || !hashes.every((sha256) => blobs.has(sha256))) return undefined
  async function* write(): AsyncGenerator<string> {
    yield '"'
    for (const piece of known) {
      if (typeof piece !== 'object') yield piece!
      else {
        yield piece.prefix
        yield* base64Of(readBlob(tenant, blobs.get(piece.sha256)!), piece.encoding, piece.lines)
      }
    }
    yield '"'
  }
  return { pieces: write(), end }
}

/** What a reference in a text says; undefined if its lines cannot be. */
function referenceOf([, broken, width, encoding, sha256, prefix]: RegExpExecArray) {
  const isLong = broken === undefined && width === undefined
  const lines = isLong ? undefined : linesOf(broken && JSON.parse(`"${broken}"`), Number(width))
  if (!isLong && !lines) return undefined
  return { encoding: encoding as Encoding, sha256: sha256!, prefix: prefix!, lines }
}

const SIZE = /"\\u0000n([0-9a-f]{64})"/g

/** Puts how many bytes blobs have where a JSON text has marks of that; null where it cannot be found out. */
export async function withBlobSizes(tenant: Tenant, text: string): Promise<string> {
  const hashes = [...new Set(Array.from(text.matchAll(SIZE), ([, sha256]) => sha256!))]
  if (hashes.length === 0) return text
  // The message is stored already: its answer says so even if this fails.
  const blobs = await findBlobs(tenant, hashes).catch(() => undefined)
  return text.replaceAll(SIZE, (_, sha256) => String(blobs?.get(sha256)?.bytes ?? null))
}

/** Bytes in base64, between the quotes of a JSON string. A piece of it ends with a group of three bytes, but for the last. */
async function* base64Of(
  chunks: AsyncIterable<Buffer>,
  encoding: Encoding,
  lines?: Base64Lines,
): AsyncGenerator<string> {
  let rest = Buffer.alloc(0)
  const broken = lineBreaker(lines)
  for await (const chunk of chunks) {
    const bytes = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk
    const whole = bytes.length - (bytes.length % 3)
    yield broken(encoded(bytes.subarray(0, whole), encoding))
    rest = Buffer.from(bytes.subarray(whole))
  }
  yield broken(encoded(rest, encoding))
}

/** UTF-8 as what stands between the quotes of a JSON string. */
async function* textOf(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8')
  for await (const chunk of chunks) yield JSON.stringify(decoder.write(chunk)).slice(1, -1)
  yield JSON.stringify(decoder.end()).slice(1, -1)
}
