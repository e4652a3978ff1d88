import { memberTexts } from '@annals/messages/json'
import type { FastifyRequest } from 'fastify'

/**
 * The answer to a change: the resource, for a key that may read it; otherwise what the caller sent, in the same
 * shape, with only ids and times added by the service.
 */
export function mayRead(request: FastifyRequest): boolean {
  return request.grant!.scopes.has('read')
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
