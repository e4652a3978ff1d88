import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from '#typebox'
import { packagedFile, VERSION } from '../../version.js'

export const KnownTag = {
  'if-none-match': Type.Optional(
    Type.String({
      description: 'The `ETag` of an earlier answer: if it would be the same, this one is 304.',
    }),
  ),
}

const TAG_LENGTH = 22
/** Another build may write the same data as other bytes. The files name what they import by its content. */
let build: string | undefined

/**
 * Tells a caller by which tag it may ask again. `version` must differ whenever anything else than the URL differs that
 * the answer is made of, and must have been read no later than that: then an answer under an old tag is never repeated.
 * undefined: there is no tag.
 */
export function showVersion(reply: FastifyReply, version: string | undefined): void {
  if (version === undefined) reply.removeHeader('etag')
  else reply.header('etag', `W/${tagOf(reply.request, version)}`)
}

/**
 * Has a handler answer only callers that do not know the answer by its tag; the others get 304. The version is looked
 * up only for a caller that names a tag: for all others, it comes with what the handler reads.
 */
export function unlessKnown<Request extends FastifyRequest>(
  readVersion: (request: Request) => Promise<string | undefined>,
  handler: (request: Request, reply: FastifyReply) => Promise<unknown>,
): typeof handler {
  return async (request, reply) => {
    const named = request.headers['if-none-match']
    const version = named && (await readVersion(request))
    if (!named || !version || !namesTag(named, tagOf(request, version))) return handler(request, reply)
    showVersion(reply, version)
    return reply.code(304).send()
  }
}

/** `*` is no tag: it would ask whether there is anything at all. */
function namesTag(named: string, tag: string): boolean {
  return named.split(',').some((text) => text.trim().replace(/^W\//, '') === tag)
}

function tagOf({ project_id, url }: FastifyRequest, version: string): string {
  build ??= ['annals.js', 'thread.js'].reduce((files, name) => files + programText(name), VERSION)
  const digest = hash('sha256', `${build}\n${project_id}\n${url}\n${version}`, 'base64url')
  return `"${digest.slice(0, TAG_LENGTH)}"`
}

function programText(name: string): string {
  return hash('sha256', readFileSync(packagedFile(`dist/bundle/${name}`)), 'base64url')
}
