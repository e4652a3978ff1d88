import { once } from 'node:events'
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { AnnalsError } from '../../errors.js'
import type { Feed, Subscription } from '../../log/follow/feed.js'
import { type ReadEntry, readLastSeq, readLog } from '../../log/read/read_log.js'
import type { EntryPage } from '../../log/read/read_queries.js'
import type { Queryable } from '../../postgres/database.js'
import { describeError } from '../../postgres/database_errors.js'
import { logReadBytes } from '../admission/request_memory.js'
import { answerPieces, PIECE_LENGTH_MAX } from './answer_pieces.js'
import type { Heartbeat } from './heartbeat.js'

const RETRY_PAUSE_MS = 500
const UNLIMITED = Number.MAX_SAFE_INTEGER

/** What a tail shows: the entries behind `after_seq`, perhaps of one kind or type only. */
export interface TailRequest {
  project_id: string
  session_id: string
  kind?: EntryPage['kind']
  type?: string | undefined
  after_seq: number
}

/**
 * Streams a session's log as server-sent events: what is stored behind `after_seq`, then each new entry, once and
 * in order. The stream holds one piece of the log at a time and waits for a slow reader; a reader that stops
 * reading (http/admission/stalled_readers.ts), a session that goes, a token that is revoked, or a shutdown ends it.
 */
export async function streamTail(
  parts: { database: Queryable; feed: Feed; heartbeat: Heartbeat },
  request: FastifyRequest,
  reply: FastifyReply,
  tail: TailRequest,
): Promise<void> {
  reply.hijack()
  const { raw } = reply
  const subscription = parts.feed.subscribe(tail.project_id, tail.session_id, tail.after_seq)
  const stop = parts.heartbeat.add({
    beat: () => {
      if (raw.writableLength === 0) raw.write(': heartbeat\n\n')
    },
    check: async () => {
      if (!(await request.isStillAuthorized())) subscription.end()
    },
  })
  raw.on('close', () => subscription.end())
  raw.on('error', () => subscription.end())
  raw.writeHead(200, {
    // Those that hooks have set: the request's id, and what a browser asks for.
    ...(reply.getHeaders() as OutgoingHttpHeaders),
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  })
  raw.write('retry: 1000\n\n')
  try {
    await follow(request, parts.database, subscription, tail, (entries) => write(raw, entries, subscription))
  } catch (error) {
    request.log.warn({ err: describeError(error) }, 'a tail ended with an error')
  } finally {
    stop()
    subscription.close()
    raw.end()
    // A reader that is stuck never sees the end; it must not keep the connection.
    if (raw.writableNeedDrain) raw.destroy()
  }
}

/**
 * Reads what is there, waits until there is more, and so on, until the subscription ends, the session goes, or its log
 * is behind what was sent, as after a restore: whoever resumes is then told.
 */
async function follow(
  request: FastifyRequest,
  database: Queryable,
  subscription: Subscription,
  tail: TailRequest,
  write: (entries: ReadEntry[]) => Promise<void>,
): Promise<void> {
  const { memory } = request
  while (!subscription.ended) {
    try {
      const { project_id, session_id } = tail
      const last_seq = await readLastSeq(database, project_id, session_id, subscription.seen_seq)
      const page = {
        ...tail,
        above_seq: subscription.seen_seq,
        below_seq: last_seq + 1,
        time_desc: false,
        limit: UNLIMITED,
      }
      if (last_seq > subscription.seen_seq) await memory.hold(logReadBytes(request))
      for await (const entries of readLog(database, page, 'item', () => !subscription.ended)) {
        await write(entries)
        if (subscription.ended) return
        subscription.seen_seq = entries.at(-1)!.seq
      }
      // Entries that a filter left out were looked at and need no second look.
      subscription.seen_seq = last_seq
      memory.keep(0)
    } catch (error) {
      const { error: name } = error instanceof AnnalsError ? error : { error: undefined }
      if (name === 'session_not_found' || name === 'seq_ahead') return
      if (name !== 'unavailable' && name !== 'overloaded') throw error
      memory.keep(0)
      await sleep(RETRY_PAUSE_MS)
      continue
    }
    await subscription.changed()
  }
}

/** Writes entries one by one, waiting while the reader is behind. */
async function write(raw: ServerResponse, entries: ReadEntry[], subscription: Subscription): Promise<void> {
  for (const { seq, kind, json } of entries) {
    const text = `id: ${seq}\nevent: ${kind}\ndata: ${json}\n\n`
    for (const piece of text.length > PIECE_LENGTH_MAX ? answerPieces(text) : [text]) {
      if (subscription.ended) return
      if (!raw.write(piece)) await drained(raw, subscription)
    }
  }
}

async function drained(raw: ServerResponse, subscription: Subscription): Promise<void> {
  try {
    await once(raw, 'drain', { signal: subscription.signal })
  } catch {
    subscription.end()
  }
}
