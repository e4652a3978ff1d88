import { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { AnnalsError, errorText } from '@annals/kits/errors.js'
import type { AppServer } from '@annals/kits/http/app_server.js'
import type { WorkThread } from '@annals/kits/threads/work_thread.js'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { numberMarks } from './masks.js'
import { redactionHere } from './redaction_work.js'
import { rulesOf } from './rules_of.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What it answers is made of answers of other operations to the same key, which are masked. */
    answers_masked?: boolean
  }
  interface FastifyRequest {
    /** Masks a JSON text for a masked reader; null: the reader sees all. For answers that bypass the hooks. */
    mask: ((json: string) => Promise<string>) | null
  }
}

/** Longer texts are masked on the work thread. */
const INLINE_LENGTH_MAX = 1024
/** Most characters of an answer masked at once, unless a single string has more. */
const PART_LENGTH = 256 * 1024

/** Operations through which a masked reader could have the project read unmasked, elsewhere or by someone else. */
const REFUSED: ReadonlySet<string> = new Set(
  'createWebhook deleteWebhook inviteMember changeMember createPersonalToken getProof'.split(' '),
)

/** They answer with a secret that was made for the caller, and with what the caller sent. */
const MAKE_SECRETS: ReadonlySet<string> = new Set(['issueToken', 'createKey', 'createPersonalToken'])

/** Whether a request's caller reads masks: its key is masked, or the role of its person is. */
function isMasked({ grant }: FastifyRequest): boolean {
  return grant?.masked === true
}

/**
 * Masks every answer to a masked reader, whatever operation it is of: what is JSON is masked as it leaves, and what is
 * not, such as the bytes of attachments, is refused. To be added before what sends answers in pieces.
 */
export function maskAnswers(app: AppServer, thread: WorkThread): void {
  app.decorateRequest('mask', null)
  app.addHook('preHandler', (request, _reply, done) => {
    if (!isMasked(request)) return done()
    request.mask = (json) => masked(thread, request, json)
    // No tags: masks change with the rules.
    delete request.headers['if-none-match']
    const { operationId = '' } = request.routeOptions.schema ?? {}
    // A personal token is masked like the person who makes it.
    const isOwn = operationId === 'createPersonalToken' && request.grant!.person !== undefined
    done(REFUSED.has(operationId) && !isOwn ? unreadable() : undefined)
  })
  app.addHook<unknown>('onSend', (request, reply, payload, done) => {
    if (!isMasked(request) || payload === null || payload === undefined) return done()
    const { config, schema } = request.routeOptions
    if (config.answers_masked || MAKE_SECRETS.has(schema?.operationId ?? '')) return done()
    reply.removeHeader('etag')
    const isJson = /^application\/(?:json|x-ndjson)/.test(String(reply.getHeader('content-type') ?? ''))
    if (typeof payload === 'string' && isJson) {
      masked(thread, request, payload).then((text) => done(null, text), done)
      return
    }
    if (payload instanceof Readable && isJson) {
      reply.removeHeader('content-length')
      return done(null, Readable.from(maskedParts(thread, request, payload)))
    }
    done(null, refused(reply, payload))
  })
}

function unreadable(): AnnalsError {
  return new AnnalsError(
    'insufficient_scope',
    'This API key is masked: it cannot read attachments, files or proofs, or create webhooks or members. Use a key that is not masked.',
  )
}

function refused(reply: FastifyReply, payload: unknown): string {
  if (payload instanceof Readable) payload.destroy()
  const { status, text } = errorText(unreadable())
  for (const name of Object.keys(reply.getHeaders()))
    if (/^content-|^accept-ranges$|^location$/.test(name)) reply.removeHeader(name)
  reply.code(status).header('content-type', 'application/json; charset=utf-8')
  return text
}

/** @throws AnnalsError insufficient_scope in place of what says that a body is too large */
function unlessTooCostly(error: unknown): never {
  if (!(error instanceof AnnalsError) || error.error !== 'payload_too_large') throw error
  throw new AnnalsError(
    'insufficient_scope',
    'This API key is masked, and the patterns in the rules of this project take too long for this answer. Request less at once, or simplify the patterns.',
  )
}

async function masked(thread: WorkThread, request: FastifyRequest, text: string): Promise<string> {
  const { read } = rulesOf(request)
  const isShort = text.length <= INLINE_LENGTH_MAX
  const on = thread.for(read.costly)
  const found = isShort
    ? redactionHere.findInAnswer(text, read)
    : await on.run(request.project_id, 'findInAnswer', text, read).catch(unlessTooCostly)
  if (!found || 'refused' in found) return text
  const rewriting = { ...read, numbers: await numberMarks(request, found.marks) }
  return isShort
    ? redactionHere.maskAnswer(text, rewriting)
    : on.run(request.project_id, 'maskAnswer', text, rewriting).catch(unlessTooCostly)
}

/** Masks an answer as it comes, in parts that end outside of strings. */
async function* maskedParts(
  thread: WorkThread,
  request: FastifyRequest,
  payload: Readable,
): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8')
  const cuts = new Cuts()
  let text = ''
  for await (const chunk of payload as AsyncIterable<Buffer | string>) {
    const more = typeof chunk === 'string' ? chunk : decoder.write(chunk)
    const cut = cuts.after(more)
    if (cut !== undefined && text.length + cut >= PART_LENGTH) {
      yield await masked(thread, request, text + more.slice(0, cut))
      text = more.slice(cut)
    } else {
      text += more
      await request.memory.hold(3 * text.length)
    }
  }
  text += decoder.end()
  if (text !== '') yield await masked(thread, request, text)
}

/** Knows where a JSON text that comes in pieces may be cut. */
class Cuts {
  private isInString = false
  private isEscaped = false

  /** The place after the last comma in the next piece that is in no string; undefined: there is none. */
  after(piece: string): number | undefined {
    let cut: number | undefined
    for (let at = 0; at < piece.length; at++) {
      const code = piece.charCodeAt(at)
      if (this.isEscaped) this.isEscaped = false
      else if (this.isInString) {
        if (code === 0x5c) this.isEscaped = true
        else if (code === 0x22) this.isInString = false
      } else if (code === 0x22) this.isInString = true
      else if (code === 0x2c) cut = at + 1
    }
    return cut
  }
}
