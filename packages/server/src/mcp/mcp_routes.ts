import type { Readable } from 'node:stream'
import { AnnalsError, errorText, invalidRequest } from '@annals/kits/errors.js'
import { outOfMemory } from '@annals/kits/fairness/fair_queue.js'
import type { AppServer } from '@annals/kits/http/app_server.js'
import type { FastifyRequest } from 'fastify'
import { bearerToken } from '../projects/authenticate.js'
import { answerCalls, mcpThread } from './mcp_on_thread.js'

/** Most bytes of a request: more than any tool takes, and few enough to parse at once. */
const BODY_BYTES_MAX = 65_536

/** Headers that the service sets for each connection and answer, and a library cannot know. */
const OWN_HEADERS = new Set([
  'connection',
  'keep-alive',
  'cache-control',
  'content-length',
  'transfer-encoding',
])

/**
 * The Model Context Protocol at /mcp, for whoever has a key that reads. Its tools call this service's own API with the
 * caller's key, so everything that holds for a request of the API holds for theirs.
 */
export function mcpRoutes(app: AppServer, cors_origins: string | undefined): void {
  const thread = mcpThread(cors_origins?.split(',') ?? [])
  app.addHook('onClose', () => thread.close())
  app.post(
    '/mcp',
    { bodyLimit: BODY_BYTES_MAX, config: { scope: 'read', answers_masked: true }, schema: { hide: true } },
    async (request, reply) => {
      const { headers, body, grant, project_id } = request
      // Hundreds of calls would have the place of one. The protocol has no batches since its version 2025-06-18.
      if (Array.isArray(body))
        throw invalidRequest('Send one message of the Model Context Protocol at a time, not an array.')
      const asked = {
        headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
        body,
        token: bearerToken(request)!,
        may_write: grant!.scopes.has('write'),
      }
      const answer = await thread.runWith(project_id, answerCalls(fetchFrom(app, request)), 'answer', asked)
      const headersOfProtocol = Object.entries(answer.headers).filter(([name]) => !OWN_HEADERS.has(name))
      return reply.code(answer.status).headers(Object.fromEntries(headersOfProtocol)).send(answer.text)
    },
  )
}

/** Larger answers would hold the event loop while they are parsed. */
const ANSWER_BYTES_MAX = 262_144
/** Memory for each byte of an answer: as it arrives, as text, as a tree, and as what is made of it. */
const ANSWER_FACTOR = 6
const TOO_LARGE = `This is more than the ${ANSWER_BYTES_MAX} bytes that a tool reads at once. Read it through the API.`
/** Headers that go along: whose request it is. */
const PASSED_ON = ['x-forwarded-for', 'traceparent', 'tracestate'] as const

/**
 * A `fetch` that answers from this process, on behalf of a request that it is serving: the same hooks, limits and routes
 * as for a request that arrives. An answer is read as a whole, into memory that the request holds; a larger one is
 * refused.
 */
export function fetchFrom(app: AppServer, request: FastifyRequest): typeof fetch {
  return async (input, init) => {
    const { pathname, search } = new URL(String(input))
    const headers = Object.fromEntries(new Headers(init?.headers))
    for (const name of PASSED_ON) {
      const value = request.headers[name]
      if (value !== undefined) headers[name] = String(value)
    }
    const answer = await app.inject({
      method: (init?.method ?? 'GET') as 'GET',
      url: pathname + search,
      headers: { ...headers, 'x-request-id': request.id },
      ...(typeof init?.body === 'string' && { payload: init.body }),
      remoteAddress: request.raw.socket.remoteAddress ?? '',
      payloadAsStream: true,
    })
    const body = await readWithin(request, answer.stream())
    if (body instanceof AnnalsError) {
      // Nobody reads on, and what would be sent must not wait for it.
      answer.raw.res.destroy()
      const { status, text } = errorText(body)
      return new Response(text, { status })
    }
    const retry_after = answer.headers['retry-after']
    return new Response(body, {
      status: answer.statusCode,
      headers: retry_after === undefined ? {} : { 'retry-after': String(retry_after) },
    })
  }
}

async function readWithin(request: FastifyRequest, stream: Readable): Promise<string | AnnalsError> {
  const chunks: Buffer[] = []
  let received = 0
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    received += chunk.length
    if (received > ANSWER_BYTES_MAX) return new AnnalsError('payload_too_large', TOO_LARGE)
    if (!request.memory.tryHold(ANSWER_FACTOR * received)) return outOfMemory()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
