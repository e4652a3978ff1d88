import type { IncomingMessage } from 'node:http'
import type { Config } from '@annals/kits/configuration/config.js'
import { AnnalsError, invalidRequest } from '@annals/kits/errors.js'
import type { AppServer } from '@annals/kits/http/app_server.js'
import { operationsOf } from '@annals/kits/http/operation.js'
import type { ModuleRoutes } from '@annals/kits/module.js'
import type { WorkThread } from '@annals/kits/threads/work_thread.js'
import type { Encoding } from '@annals/otel'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { AppendParts } from '../log/append_within_quota.js'
import type { OtelWork, Sent, Signal, Taken } from './otel_on_thread.js'
import { Store } from './store.js'

/** Bytes of a body, as it is sent and decompressed: exporters send batches of hundreds of spans. */
const BYTES_MAX = 8 * 1024 * 1024
/** Memory for each byte of a body: as it arrives, and on its way to the database. */
const BODY_FACTOR = 3

const operation = operationsOf('OpenTelemetry')

interface OtelParts extends AppendParts {
  config: Config
  thread: WorkThread<OtelWork>
  /** For what rules rewrite. */
  bodies: WorkThread
}

const ENCODINGS: Readonly<Record<string, Encoding>> = {
  'application/x-protobuf': 'protobuf',
  'application/protobuf': 'protobuf',
  'application/json': 'json',
}

const TYPES = ['application/x-protobuf', 'application/json']

export const otelRoutes = (parts: OtelParts): ModuleRoutes => ({
  byte_bodies: { takeTraces: TYPES, takeLogs: TYPES },
  project: (app) =>
    app.register(async (scope: AppServer) => {
      scope.removeAllContentTypeParsers()
      scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
      takes(parts, 'traces')(scope)
      takes(parts, 'logs')(scope)
    }),
})

const SAID = {
  traces: {
    id: 'takeTraces',
    summary: 'Store OpenTelemetry traces',
    description:
      "An `ExportTraceServiceRequest` of OTLP. A span becomes an event `otel.span` of the session named by its attributes, or else by its trace; a model's input and output become messages, each stored once. 200 means that everything is committed and visible to the next read; `partialSuccess` names what was refused.",
  },
  logs: {
    id: 'takeLogs',
    summary: 'Store OpenTelemetry logs',
    description:
      'An `ExportLogsServiceRequest` of OTLP. A record becomes an event `otel.log` of the session named by its attributes, or else by its trace.',
  },
} as const

function takes(parts: OtelParts, signal: Signal) {
  return operation({
    call: `POST /otel/v1/${signal}`,
    config: { scope: 'ingest', appends: true },
    body_bytes_max: BYTES_MAX,
    ...SAID[signal],
    returns: 'It is stored, except for what `partialSuccess` names.',
    errors: ['quota_exceeded', 'payload_too_large', 'unsupported_media_type', 'request_timeout'],
    extend: documented,
    handle: async (request, reply) => {
      const encoding = encodingOf(request)
      const is_compressed = isCompressed(request)
      // Conditions and keys of other appends mean nothing here: repeats are known by their ids.
      delete request.headers['idempotency-key']
      delete request.headers['if-match']
      const body = await received(request)
      const entry_bytes_max = parts.config.body_bytes_max
      const sent: Sent = {
        ...{ signal, encoding, is_compressed, entry_bytes_max },
        ...{ project_id: request.project_id, bytes_max: BYTES_MAX },
      }
      const store = new Store(parts, request)
      const taken = await parts.thread.runWith(
        request.project_id,
        (call: never) => store.answer(call),
        'take',
        sent,
        body,
      )
      return answerTaken(reply, encoding, signal, taken, store)
    },
  })
}

function encodingOf({ headers }: FastifyRequest): Encoding {
  const type = (headers['content-type'] ?? '').split(';', 1)[0]!.trim().toLowerCase()
  const encoding = Object.hasOwn(ENCODINGS, type) ? ENCODINGS[type] : undefined
  if (encoding) return encoding
  throw new AnnalsError(
    'unsupported_media_type',
    'The body must be OTLP, with Content-Type: application/x-protobuf or application/json.',
  )
}

function isCompressed({ headers }: FastifyRequest): boolean {
  const encoding = (headers['content-encoding'] ?? 'identity').trim().toLowerCase()
  if (encoding === 'gzip') return true
  if (encoding === 'identity') return false
  throw new AnnalsError('unsupported_media_type', 'The body must be uncompressed or gzipped.')
}

/** The body, for which memory is held as it arrives. Once it is whole, its size decompressed is held as well. */
async function received(request: FastifyRequest): Promise<Uint8Array> {
  const payload = request.body as IncomingMessage | undefined
  const announced = Number(request.headers['content-length'] ?? 0)
  if (announced > BYTES_MAX) {
    payload?.resume()
    throw tooLarge()
  }
  const pieces: Buffer[] = []
  let length = 0
  try {
    for await (const piece of payload?.iterator({ destroyOnReturn: false }) ?? []) {
      length += (piece as Buffer).length
      if (length > BYTES_MAX) throw tooLarge()
      await request.memory.hold(BODY_FACTOR * length)
      pieces.push(piece as Buffer)
    }
  } catch (error) {
    if (error instanceof AnnalsError) throw error
    throw invalidRequest('The body ended before it was complete. Send it again.', { cause: error })
  } finally {
    payload?.resume()
  }
  const body = new Uint8Array(length)
  let at = 0
  for (const piece of pieces) {
    body.set(piece, at)
    at += piece.length
  }
  if (isCompressed(request) && length >= 4) {
    // As the end of a gzip states it; where that is not true, the thread refuses the body.
    const size = new DataView(body.buffer).getUint32(length - 4, true)
    await request.memory.hold(BODY_FACTOR * (length + Math.min(size, BYTES_MAX)))
  }
  return body
}

function tooLarge(): AnnalsError {
  return new AnnalsError(
    'payload_too_large',
    `The body has more than ${BYTES_MAX} bytes. Send smaller batches.`,
  )
}

function answerTaken(reply: FastifyReply, encoding: Encoding, signal: Signal, taken: Taken, store: Store) {
  if (taken === 'failed') throw store.failure ?? new AnnalsError('overloaded')
  if ('unreadable' in taken) {
    const { unreadable, is_too_large } = taken
    throw is_too_large ? new AnnalsError('payload_too_large', unreadable) : invalidRequest(unreadable)
  }
  const { refused, reason } = taken
  const what = signal === 'traces' ? 'rejectedSpans' : 'rejectedLogRecords'
  if (encoding === 'json') {
    const partial = refused > 0 ? { partialSuccess: { [what]: String(refused), errorMessage: reason } } : {}
    return reply.header('content-type', 'application/json').send(JSON.stringify(partial))
  }
  const writer = new BinaryWriter()
  if (refused > 0)
    writer
      .tag(1, WireType.LengthDelimited)
      .fork()
      .tag(1, WireType.Varint)
      .int64(refused)
      .tag(2, WireType.LengthDelimited)
      .string(reason)
      .join()
  return reply.header('content-type', 'application/x-protobuf').send(Buffer.from(writer.finish()))
}

/** A body of OTLP, and its answer, which has no envelope. */
function documented(documented: Record<string, unknown>): Record<string, unknown> {
  const partialSuccess = {
    type: 'object',
    properties: { errorMessage: { type: 'string' } },
    additionalProperties: { type: 'string' },
    description: 'What was refused: `rejectedSpans` or `rejectedLogRecords`, and why. Absent: nothing.',
  }
  const schema = { type: 'object', properties: { partialSuccess } }
  const content = {
    'application/json': { schema },
    'application/x-protobuf': { schema: { type: 'string', format: 'binary' } },
  }
  return { ...documented, 200: { ...(documented[200] as object), content } }
}
