import { memberTexts } from '@annals/messages/json'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type AnnalsError, retryAfterOf, statusOf } from '../../errors.js'

/** Answers with a resource that is already JSON text. */
export function answer(reply: FastifyReply, data: string, status?: number): FastifyReply {
  return reply.send(inEnvelope(reply, data, status))
}

/** The text of an answer: the resource, unchanged, in the envelope. Sets what else the answer has. */
export function inEnvelope(reply: FastifyReply, data: string, status = 200): string {
  reply.code(status).header('content-type', 'application/json; charset=utf-8')
  return `{"code":0,"error":"","msg":"ok","data":${data}}`
}

/** A list that is answered as a whole. */
export function itemsOf(items: string[]): string {
  return `{"items":[${items.join(',')}]}`
}

export function answerError(reply: FastifyReply, error: AnnalsError): FastifyReply {
  const { status, text } = errorText(error)
  const retry_after = retryAfterOf(error.error)
  if (retry_after !== undefined && !reply.hasHeader('retry-after'))
    reply.header('retry-after', String(retry_after))
  if (status === 401) reply.header('www-authenticate', 'Bearer')
  return reply.code(status).header('content-type', 'application/json; charset=utf-8').send(text)
}

/** Characters of a message: a sentence has far fewer, unless it quotes what a caller sent. */
const MESSAGE_LENGTH_MAX = 4_000

/** The status and the body of an error's answer. */
export function errorText({ error, message }: AnnalsError): { status: number; text: string } {
  const status = statusOf(error)
  const msg = message.length > MESSAGE_LENGTH_MAX ? `${message.slice(0, MESSAGE_LENGTH_MAX)}…` : message
  return { status, text: JSON.stringify({ code: status, error, msg }) }
}

/** The JSON text of a field of the body; `otherwise` if it was not sent. */
export function sentField(request: FastifyRequest, name: string, otherwise: string): string {
  const text = memberTexts(request.bodyText).get(name) ?? 'null'
  return text === 'null' ? otherwise : text
}

/** A resource as JSON text, with other values for some of its fields, and without those that are undefined. */
export function withFields(json: string, values: Record<string, string | undefined>): string {
  const fields = new Map([...memberTexts(json), ...Object.entries(values)])
  const shown = [...fields].filter(([, text]) => text !== undefined)
  return `{${shown.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}`
}
