import { Readable } from 'node:stream'
import type { Config } from '@annals/kits/configuration/config.js'
import { byteResponses } from '@annals/kits/contract/responses.js'
import { Count, optional, Sha256, Strict } from '@annals/kits/contract/schema.js'
import { AnnalsError, type ErrorName, invalidRequest } from '@annals/kits/errors.js'
import { answer, piecesStream } from '@annals/kits/http/answer/answer.js'
import type { AppServer } from '@annals/kits/http/app_server.js'
import { allOf, operationsOf } from '@annals/kits/http/operation.js'
import { receiveBytes } from '@annals/kits/http/request/read_body.js'
import { DATABASE_BLOB_BYTES_MAX } from '@annals/kits/limits.js'
import type { ModuleRoutes } from '@annals/kits/module.js'
import type { SharedDatabase } from '@annals/kits/postgres/database.js'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from '#typebox'
import type { UsageDirectory } from '../projects/usage.js'
import type { AssetUrls } from './asset_urls.js'
import {
  type Blob,
  blobTooLarge,
  findBlob,
  findBlobOf,
  READ_BYTES,
  readBlob,
  STORE_BYTES,
  touchBlob,
} from './blob_store.js'
import { keyOf, objectsOf } from './discard_blobs.js'
import { ASSETS_PATH } from './public_urls.js'
import { storeBlobWithinQuota } from './store_within_quota.js'

const operation = operationsOf('Attachments')

const BlobSchema = Type.Object(
  {
    sha256: Sha256,
    bytes: Count('How many bytes it has.'),
  },
  { $id: 'Blob' },
)

const AssetQuery = Strict(
  optional({
    sha256: Sha256,
    s3_key: Type.String({ ...Sha256, description: 'The same, as clients read it from `asset`.' }),
  }),
)

const BlobHeaders = Type.Object(
  optional({
    range: Type.String({
      description:
        'One range of bytes, such as `bytes=0-1023`. Several ranges, or another unit, are ignored.',
    }),
  }),
)

interface BlobParts {
  config: Config
  assets: AssetUrls
  database: SharedDatabase
  usage: UsageDirectory
}

const putBlob = ({ config, usage }: BlobParts) =>
  operation({
    call: 'PUT /blobs/:sha256',
    id: 'putBlob',
    scope: 'append',
    summary: 'Send a blob',
    description:
      'The body is the bytes themselves, of any type. If the project already has the blob, the body is not read. A blob that no entry refers to is deleted after 24 hours; sending it again restarts that time.',
    status: 201,
    returns: 'The bytes were stored.',
    data: Type.Ref('Blob'),
    also: { 200: 'The project has them already.' },
    errors: ['quota_exceeded', 'payload_too_large', 'unsupported_media_type', 'request_timeout'],
    handle: async (request, reply) => {
      const { blob_bytes_max } = config
      const { sha256 } = request.params
      const known = await touchBlob(request, sha256)
      if (known !== undefined) return answer(reply, JSON.stringify({ sha256, bytes: known }))
      const { source, length } = receiveBytes(request)
      if (length !== undefined && length > blob_bytes_max) throw blobTooLarge(blob_bytes_max)
      await request.memory.hold(STORE_BYTES)
      // Without a length it stays in the database, also where there is an object store.
      const bytes_max = length ?? Math.min(blob_bytes_max, DATABASE_BLOB_BYTES_MAX)
      const { bytes, known: isKnown } = await storeBlobWithinQuota(
        usage,
        request,
        sha256,
        source,
        bytes_max,
        length,
      )
      return answer(reply, JSON.stringify({ sha256, bytes }), isKnown ? 200 : 201)
    },
  })

const BYTES = {
  returns: 'The bytes.',
  errors: ['blob_not_found', 'range_not_satisfiable'] as ErrorName[],
  extend: (documented: Record<string, unknown>) =>
    byteResponses(documented, { 200: 'The bytes.', 206: 'The range of the bytes.' }),
}

const ownRoutes = (parts: BlobParts) =>
  allOf(
    (app) =>
      app.register(async (scope: AppServer) => {
        scope.removeAllContentTypeParsers()
        scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
        putBlob(parts)(scope)
      }),

    operation({
      call: 'GET /blobs/:sha256',
      id: 'getBlob',
      summary: 'Read a blob',
      description: 'The bytes, all or one range of them. HEAD returns their number.',
      headers: BlobHeaders,
      ...BYTES,
      handle: async (request, reply) => sendBlob(reply, await findBlob(request, request.params.sha256)),
    }),

    operation({
      call: 'GET /session/:session_id/asset/download',
      id: 'downloadAsset',
      summary: 'Read a blob of a session',
      description: 'Only a blob that an entry of the session refers to; others get 404.',
      is_found_as_whole: true,
      querystring: AssetQuery,
      headers: BlobHeaders,
      ...BYTES,
      handle: async ({ database, project_id, params, query }, reply) => {
        const { s3_key, sha256 = s3_key } = query
        if (sha256 === undefined || (s3_key ?? sha256) !== sha256)
          throw invalidRequest('Query parameter sha256 must name the asset, or s3_key.')
        const asset = { project_id, owner_id: params.session_id, sha256 }
        return sendBlob(reply, await findBlobOf(database, asset, 'session'))
      },
    }),
  )

function assetUrlRoute(app: AppServer, { assets, database }: BlobParts): void {
  app.get(`${ASSETS_PATH}/:token`, { schema: { hide: true } }, async (request, reply) => {
    const asset = await assets.open((request.params as { token: string }).token)
    const { project_id, sha256 } = asset
    Object.assign(request, {
      project_id,
      database: database.of(project_id),
    } satisfies Partial<FastifyRequest>)
    const blob = await findBlobOf(request.database, asset, 'session_or_skill')
    if (!blob.in_object_store || request.method === 'HEAD') return sendBlob(reply, blob)
    return reply.redirect(await objectsOf(request.database).sign(keyOf(project_id, blob.id), sha256))
  })
}

export const blobRoutes = (parts: BlobParts): ModuleRoutes => ({
  project: ownRoutes(parts),
  open: (app) => assetUrlRoute(app, parts),
  schemas: [BlobSchema],
  byte_bodies: { putBlob: ['application/octet-stream'] },
})

const RANGE = /^bytes=(?:(\d{1,15})-(\d{0,15})|-(\d{1,15}))$/

/**
 * Answers with the bytes of a blob, or the one range of them that the request asks for (RFC 9110, 14). A browser saves
 * them and neither shows nor runs them. @throws AnnalsError range_not_satisfiable
 */
async function sendBlob(reply: FastifyReply, blob: Blob): Promise<FastifyReply> {
  const { request } = reply
  const { sha256, bytes } = blob
  const tag = `"${sha256}"`
  await request.memory.hold(READ_BYTES)
  reply.header('accept-ranges', 'bytes')
  const { range: wanted, 'if-range': of = tag } = request.headers
  const range = request.method === 'GET' && of === tag ? rangeOf(wanted, bytes) : undefined
  if (range === 'none') {
    reply.header('content-range', `bytes */${bytes}`)
    throw new AnnalsError(
      'range_not_satisfiable',
      `The blob has ${bytes} bytes. Request a range that begins within them.`,
    )
  }
  const { from, to } = range ?? { from: 0, to: bytes }
  if (range) reply.code(206).header('content-range', `bytes ${from}-${to - 1}/${bytes}`)
  reply.headers({
    'content-type': 'application/octet-stream',
    'content-length': to - from,
    'content-disposition': `attachment; filename*=UTF-8''${sha256}`,
    'content-security-policy': "default-src 'none'; sandbox",
    etag: tag,
  })
  // Without a stream, the framework would say that there are no bytes.
  if (request.method === 'HEAD') return reply.send(Readable.from([]))
  return reply.send(piecesStream(request, readBlob(request, blob, from, to)))
}

/** The range, `none` if it lies after the end; undefined where the whole is to be answered. */
function rangeOf(
  header: string | undefined,
  bytes: number,
): { from: number; to: number } | 'none' | undefined {
  const [, first, last, suffix] = RANGE.exec(header ?? '') ?? []
  if (suffix !== undefined) {
    const length = Math.min(Number(suffix), bytes)
    return length === 0 ? 'none' : { from: bytes - length, to: bytes }
  }
  if (first === undefined) return undefined
  const from = Number(first)
  const to = last ? Math.min(Number(last) + 1, bytes) : bytes
  // A range that ends before it begins is no range.
  if (last && Number(last) < from) return undefined
  return from >= bytes ? 'none' : { from, to }
}
