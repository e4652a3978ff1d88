import { once } from 'node:events'
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { AnnalsError } from '@annals/kits/errors.js'
import { answerPieces, logReadBytes, PIECE_LENGTH_MAX } from '@annals/kits/http/answer/answer.js'
import type { Heartbeat } from '@annals/kits/http/answer/heartbeat.js'
import { logOf } from '@annals/kits/http/request/log_of.js'
import { type LogPosition, writePosition } from '@annals/kits/lists/log_position.js'
import type { Queryable } from '@annals/kits/postgres/database.js'
import { describeError } from '@annals/kits/postgres/database_errors.js'
import { BRIEF_ROWS_MAX } from '@annals/kits/postgres/statement.js'
import { lacksBytes } from '@annals/messages'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { holdTail } from '../../access/reach.js'
import { withBlobBytes } from '../../blobs/blob_bytes.js'
import type { ReadEntry } from '../read/entry_columns.js'
import { LogReader, UNLIMITED } from '../read/read_log.js'
import type { EntryPage } from '../read/read_queries.js'
import type { Feed, Subscription } from './feed.js'

const RETRY_PAUSE_MS = 500

/** The entries of a tail: those after `seen`, possibly of one kind or type only. */
export interface TailRequest {
  project_id: string
  session_id: string
  kind?: EntryPage['kind']
  type?: string | undefined
  seen: LogPosition
}

/**
 * Streams a session's log as server-sent events: the stored entries after a position, then each new one, once and in
 * order. The stream holds one piece of the log at a time and waits for a slow client.
 */
export async function streamTail(
  parts: { database: Queryable; feed: Feed; heartbeat: Heartbeat },
  request: FastifyRequest,
  reply: FastifyReply,
  tail: TailRequest,
): Promise<void> {
  const subscription = parts.feed.subscribe(tail.project_id, tail.session_id, tail.seen.seq)
  return openStream(parts, request, reply, subscription, () =>
    follow(request, subscription, entriesOf(reply, parts.database, subscription, tail)),
  )
}

/**
 * Opens a stream of server-sent events for as long as `work` runs. It ends when the client stops reading
 * (http/admission/connections.ts), the session is deleted, the token is revoked, or the service stops.
 */
export async function openStream(
  parts: { heartbeat: Heartbeat },
  request: FastifyRequest,
  reply: FastifyReply,
  subscription: Subscription,
  work: () => Promise<void>,
): Promise<void> {
  const release = holdTail(request)
  reply.hijack()
  const { raw } = reply
  const stop = parts.heartbeat.add({
    beat: () => {
      if (raw.writableLength === 0) raw.write(': heartbeat\n\n')
    },
    check: async () => {
      if (!(await request.isStillAuthorized!())) subscription.end()
    },
  })
  const renewal = renewBefore(request, subscription)
  raw.on('close', () => subscription.end())
  raw.on('error', () => subscription.end())
  raw.writeHead(200, {
    // Headers set by hooks: the request's id, and what a browser asks for.
    ...(reply.getHeaders() as OutgoingHttpHeaders),
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  })
  raw.write('retry: 1000\n\n')
  try {
    await work()
  } catch (error) {
    logOf(request).warn({ err: describeError(error) }, 'a tail ended with an error')
  } finally {
    stop()
    release()
    renewal.cancel()
    subscription.close()
    raw.end(renewal.text())
    // A client that is stuck never sees the end; it must not keep the connection.
    if (raw.writableNeedDrain) raw.destroy()
  }
}

/** How long before its token expires a tail ends, so that its client goes on with another token. */
const RENEWED_MS = 60_000

/**
 * Ends the tail of a token that will expire soon, with an event that says so. A tail that is opened in that last minute
 * lasts as long as its token.
 */
function renewBefore({ grant }: FastifyRequest, subscription: Subscription) {
  const { narrow } = grant!
  if (!narrow) return { cancel: () => {}, text: () => '' }
  const left_ms = narrow.expires_at_ms - Date.now()
  let isDue = false
  const end = () => {
    isDue = !subscription.ended && !subscription.writing
    subscription.end()
  }
  const timer = setTimeout(end, left_ms > RENEWED_MS ? left_ms - RENEWED_MS : left_ms)
  const data = JSON.stringify({ expires_at: new Date(narrow.expires_at_ms).toISOString() })
  return {
    cancel: () => clearTimeout(timer),
    text: () => (isDue ? `event: renew\ndata: ${data}\n\n` : ''),
  }
}

/** A tail that meets these has no more to show; its client gets the error when it resumes. */
const OVER: ReadonlySet<unknown> = new Set(['session_not_found', 'seq_ahead', 'log_diverged'])

/**
 * Sends what is there, waits for more, and so on, until the subscription ends, the session is deleted, or its log is no
 * longer the one of which entries were sent, as after a restore. `send` returns in how many ms it has to be called again
 * even if nothing changes; undefined: never.
 */
export async function follow(
  request: FastifyRequest,
  subscription: Subscription,
  send: () => Promise<number | undefined>,
): Promise<void> {
  const { memory } = request
  while (!subscription.ended) {
    let again_ms: number | undefined
    try {
      await memory.hold(logReadBytes(request))
      again_ms = await send()
    } catch (error) {
      const { error: name } = error instanceof AnnalsError ? error : { error: undefined }
      if (OVER.has(name)) return
      if (name !== 'unavailable' && name !== 'overloaded') throw error
      again_ms = RETRY_PAUSE_MS
    }
    memory.keep(0)
    await subscription.changed(again_ms)
  }
}

function entriesOf(
  reply: FastifyReply,
  database: Queryable,
  subscription: Subscription,
  tail: TailRequest,
): () => Promise<undefined> {
  const { raw, request } = reply
  const { project_id, session_id, kind, type } = tail
  let { seen } = tail
  /** Few, so that tails of a session read together, as soon as there are few: see GroupedReads. */
  let piece_max: number | undefined
  return async () => {
    const log = new LogReader(database, { project_id, session_id }, seen, () => !subscription.ended)
    const range = { above_seq: seen.seq, below_seq: UNLIMITED }
    for await (const entries of log.read('item', {
      kind,
      type,
      ...range,
      time_desc: false,
      limit: UNLIMITED,
      ...(piece_max && { piece_max }),
    })) {
      request.shows?.([session_id])
      await write(reply, entries, subscription)
      if (subscription.ended) return
      const { seq, created_at } = entries.at(-1)!
      seen = { seq, created_at }
      subscription.seen_seq = seq
    }
    piece_max = BRIEF_ROWS_MAX
    // Entries that the filter rejected need not be read again. The client notices, too, if a restore takes them away.
    const is_behind = seen.seq < log.last_seq
    if (is_behind) seen = await log.positionOf(log.last_seq)
    subscription.seen_seq = seen.seq
    request.memory.keep(0)
    if (is_behind && !raw.write(`id: ${writePosition(seen)}\n\n`)) await drained(raw, subscription)
  }
}

async function write(
  { raw, request }: FastifyReply,
  entries: ReadEntry[],
  subscription: Subscription,
): Promise<void> {
  for (const entry of entries) {
    const { seq, kind } = entry
    const json = request.mask ? await request.mask(entry.json) : entry.json
    // The second block, which is no event, is what a client sends back as Last-Event-ID.
    const whole = [`id: ${seq}\nevent: ${kind}\ndata: ${json}\n\nid: ${writePosition(entry)}\n\n`]
    for await (const text of lacksBytes(json) && !request.mask ? withBlobBytes(request, whole) : whole) {
      for (const piece of text.length > PIECE_LENGTH_MAX ? answerPieces(text) : [text]) {
        if (subscription.ended) return
        subscription.writing = true
        if (!raw.write(piece)) await drained(raw, subscription)
      }
    }
    subscription.writing = false
  }
}

export async function drained(raw: ServerResponse, subscription: Subscription): Promise<void> {
  try {
    await once(raw, 'drain', { signal: subscription.signal })
  } catch {
    subscription.end()
  }
}

/** Whether a caller asks for the stream by name, not only by a wildcard. */
export function acceptsStream(accept: string | undefined): boolean {
  return (
    accept?.split(',').some((range) => range.trim().split(';')[0]!.toLowerCase() === 'text/event-stream') ??
    false
  )
}
