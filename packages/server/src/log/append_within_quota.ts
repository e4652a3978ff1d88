import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { AnnalsError } from '@annals/kits/errors.js'
import type { Heartbeat } from '@annals/kits/http/answer/heartbeat.js'
import type { AppServer } from '@annals/kits/http/app_server.js'
import type { BodyReader } from '@annals/kits/http/request/read_body.js'
import type { WorkThread } from '@annals/kits/threads/work_thread.js'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ownBlobs, ownKey } from '../access/reach.js'
import { touchBlob } from '../blobs/blob_store.js'
import type { PublicUrlMaker } from '../blobs/public_urls.js'
import { storeBlobWithinQuota } from '../blobs/store_within_quota.js'
import type { UsageDirectory } from '../projects/usage.js'
import type { AppendOutcome, AppendRequest, IdempotencyKey } from './append/append_request.js'
import type { Appender } from './append/appender.js'
import { blobMissing, requireBlobs } from './append/blob_places.js'
import type { Feed } from './follow/feed.js'

export interface LogParts extends AppendParts {
  config: BodyReader['config']
  thread: WorkThread
  feed: Feed
  heartbeat: Heartbeat
  urls: PublicUrlMaker
}

const ATTEMPTS_MAX = 3

export interface AppendParts {
  appender: Appender
  usage: UsageDirectory
}

/**
 * Appends within the project's quota of bytes, and only if the project has the blobs that the entries refer to.
 * @throws AnnalsError quota_exceeded, blob_missing, and as Appender.append
 */
export function appendWithinQuota(
  parts: AppendParts,
  request: FastifyRequest,
  asked: Omit<
    AppendRequest,
    | 'project_id'
    | 'if_match'
    | 'fence'
    | 'idempotency'
    | 'unmarked_until'
    | 'proof'
    | 'room'
    | 'configs_patch'
  >,
): Promise<AppendOutcome> {
  // Every member is named: a spread would give each request a shape of its own, and all that reads it would be slow.
  const { session_id, kind, entries, retraction, unrevised_since, appends, apply } = asked
  const { 'if-match': if_match } = request.headers
  const append: AppendRequest = {
    project_id: request.project_id,
    session_id,
    kind,
    entries,
    retraction,
    appends,
    // The seq in quotes: the contract has checked it.
    if_match: appends || if_match === undefined ? undefined : Number(if_match.slice(1, -1)),
    // If-Match says more.
    unrevised_since: if_match === undefined ? unrevised_since : undefined,
    fence: appends ? undefined : fenceOf(request),
    apply,
    idempotency: idempotencyOf(request),
    unmarked_until: request.grant!.unmarked_until,
    proof: request.grant!.proof,
    room: undefined,
    only_known: asked.only_known,
    looked_up: asked.looked_up,
    unanswered: asked.unanswered,
  }
  // An await here, with the promises that belong to it, is a twentieth of what a small append costs.
  if (request.attachments?.length) return appendWithBlobs(parts, request, append)
  for (const { references } of entries) if (references) return appendWithBlobs(parts, request, append)
  return store(parts, request, append)
}

function store(parts: AppendParts, request: FastifyRequest, append: AppendRequest) {
  return appendWithin(parts, append, request.grant!.quotas.max_bytes)
}

/** The same for appends of the service itself. `max_bytes`: the project's quota, if it has one. */
export function appendWithin(parts: AppendParts, append: AppendRequest, max_bytes: number | undefined) {
  return max_bytes === undefined ? parts.appender.append(append) : appendReserved(parts, append, max_bytes)
}

/**
 * Appends if there is room. At the limit, a retry of a stored append is still answered.
 * @throws AnnalsError quota_exceeded, and as Appender.append
 */
async function appendReserved(
  { appender, usage }: AppendParts,
  request: AppendRequest,
  max_bytes: number,
): Promise<AppendOutcome> {
  const bytes = request.entries.reduce((sum, entry) => sum + entry.bytes, 0)
  try {
    request.room = await usage.reserve(request.project_id, 'bytes', bytes, max_bytes)
  } catch (error) {
    const mayBeKnown = request.idempotency || request.entries.some(({ id_given }) => id_given)
    const isOver = error instanceof AnnalsError && error.error === 'quota_exceeded'
    if (!isOver || !mayBeKnown) throw error
    return appender.append({ ...request, only_known: error })
  }
  try {
    return await appender.append(request)
  } finally {
    // Where it was stored, it is settled. Where nobody knows, it counts once it is known.
    request.room.settle({})
  }
}

async function appendWithBlobs(
  parts: AppendParts,
  request: FastifyRequest,
  append: AppendRequest,
): Promise<AppendOutcome> {
  for (let attempts = 1; ; attempts++) {
    try {
      await storeAttachments(parts.usage, request)
      await requireBlobs(request.database, append)
      if (request.grant!.narrow) await requireOwnBlobs(request, append)
      return await store(parts, request, append)
    } catch (error) {
      // Blobs that the project had may have been deleted with the last entry that referred to them.
      const isMissing = error instanceof AnnalsError && error.error === 'blob_missing'
      if (!isMissing || !request.attachments?.length || attempts === ATTEMPTS_MAX) throw error
    }
  }
}

/** A token refers to blobs that it sends, or to which its session refers already. @throws AnnalsError blob_missing */
async function requireOwnBlobs(request: FastifyRequest, append: AppendRequest): Promise<void> {
  const places = append.entries.flatMap(({ references = [] }) => references)
  const hashes = places.map(({ sha256 }) => sha256)
  const known = await ownBlobs(request, append.session_id, hashes)
  for (const { sha256 } of request.attachments ?? []) known.add(sha256)
  const missing = places.find(({ sha256 }) => !known.has(sha256))
  if (missing) throw blobMissing(missing)
}

/** Stores the bytes that were taken out of the body. Those that nothing refers to in the end are deleted after a day. */
async function storeAttachments(usage: UsageDirectory, request: FastifyRequest): Promise<void> {
  for (const { sha256, bytes } of request.attachments ?? []) {
    if ((await touchBlob(request, sha256)) !== undefined) continue
    const source = [Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)]
    await storeBlobWithinQuota(usage, request, sha256, source, bytes.length, bytes.length)
  }
}

/** The caller's idempotency key, with a digest of everything that identifies the request. */
export function idempotencyOf(request: FastifyRequest): IdempotencyKey | undefined {
  const key = request.headers['idempotency-key'] as string | undefined
  if (key === undefined) return undefined
  const { method, headers, params, routeOptions } = request
  const target = `${method} ${routeOptions.url} ${JSON.stringify(params)} ${headers['if-match'] ?? ''}\n`
  return {
    key: ownKey(request, key),
    request_hash: createHash('sha256')
      .update(target)
      .update(request.sentText ?? request.bodyText)
      .digest('base64url'),
  }
}

export function markReplayed(reply: FastifyReply, replayed: boolean): void {
  if (replayed) reply.header('idempotent-replayed', 'true')
}

/** Number of waiting appends, over all projects, from which on it pays to ask whose they are. */
const CROWDED = 250

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route appends to a log: if its project is behind, it is refused before its body is read. */
    appends?: boolean
  }
}

export function lateAppends(app: AppServer, appender: Pick<Appender, 'isBehind' | 'waitingRequests'>) {
  const endings = new Set<string>()
  app.addHook('onRoute', ({ url, config }) => {
    if (config?.appends) endings.add(lastPart(url))
  })
  return ({ method, url }: IncomingMessage, projectOf: () => string | undefined): boolean => {
    if (appender.waitingRequests < CROWDED || method !== 'POST' || !endings.has(lastPart(url!))) return false
    const project_id = projectOf()
    return project_id !== undefined && appender.isBehind(project_id)
  }
}

function lastPart(url: string): string {
  const query = url.indexOf('?')
  const end = query === -1 ? url.length : query
  return url.slice(url.lastIndexOf('/', end - 1) + 1, end)
}

export function fenceOf({ headers }: { headers: Record<string, unknown> }): number | undefined {
  const fence = headers['annals-fence']
  return fence === undefined ? undefined : Number(fence)
}
