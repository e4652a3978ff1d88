import { AnnalsError, invalidRequest } from '@annals/kits/errors.js'
import { type RewritesBodies, readBodyJson } from '@annals/kits/http/request/read_body.js'
import type { WorkThread } from '@annals/kits/threads/work_thread.js'
import type { FastifyRequest } from 'fastify'
import type { AppendedEntry } from '../log/append/append_request.js'
import { numberMarks } from './masks.js'
import { type Found, findInJson, type Rewriting, rewriteTaken } from './redaction_work.js'
import { type RulesText, rulesOf } from './rules_of.js'

/** Longer bodies are looked through on the work thread. */
const INLINE_BYTES_MAX = 1024
/** Their bodies are settings: no entry is made of them, and secrets belong into them. */
const EXEMPT: ReadonlySet<string> = new Set(['setRedaction', 'createWebhook', 'createKey'])

/** Rewrites bodies that are sent to projects with rules, before anything else reads them. */
export function rewritesBodies(thread: WorkThread): RewritesBodies<Rewriting> {
  return {
    rewrite: rewriteTaken,
    prepare: (request, body, limits, content_type) => {
      // Nearly every project: nothing else is looked at.
      if (request.grant?.redaction == null) return undefined
      const { write } = rulesOf(request)
      const operation = request.routeOptions.schema?.operationId ?? ''
      if (!write || body.length === 0 || EXEMPT.has(operation)) return undefined
      return find(thread, request.project_id, { operation, body, limits, content_type }, write).then(
        (found) => rewritingFor(request, found, write),
      )
    },
  }
}

interface Sent {
  operation: string
  body: Buffer
  limits: Parameters<RewritesBodies['prepare']>[2]
  content_type: string | undefined
}

async function find(
  thread: WorkThread,
  project_id: string,
  { operation, body, limits, content_type }: Sent,
  rules: RulesText,
): Promise<Found> {
  if (content_type === undefined && body.length <= INLINE_BYTES_MAX) {
    const json = readBodyJson(body)
    // It is refused for that when it is taken.
    return json instanceof AnnalsError ? undefined : findInJson(operation, json, rules)
  }
  // Bytes handed to the thread are gone here.
  const copy = new Uint8Array(body)
  const on = thread.for(rules.costly)
  return content_type === undefined
    ? on.run(project_id, 'findInBody', operation, copy, limits, rules)
    : on.run(project_id, 'findInForm', operation, content_type, copy, limits!, rules)
}

/** @throws AnnalsError invalid_request, if a rule refuses it */
async function rewritingFor(
  request: FastifyRequest,
  found: Found,
  rules: RulesText,
): Promise<Rewriting | undefined> {
  if (!found) return undefined
  if ('refused' in found) throw refusal(found.refused)
  return { ...rules, numbers: await numberMarks(request, found.marks) }
}

function refusal({ pointer, name }: { pointer: string; name: string }): AnnalsError {
  return invalidRequest(
    `${pointer || '/'} contains a value that a redaction rule refuses: ${name}. Nothing was stored. Send it without that value.`,
  )
}

/** Rewrites entries that come as no JSON. @throws AnnalsError invalid_request, if a rule refuses one */
export async function rewriteEntries(
  thread: WorkThread,
  request: FastifyRequest,
  session_id: string,
  entries: AppendedEntry[],
): Promise<AppendedEntry[]> {
  if (request.grant?.redaction == null) return entries
  const { write } = rulesOf(request)
  if (!write) return entries
  const on = thread.for(write.costly)
  const found = await on.run(request.project_id, 'findInEntries', entries, write)
  if (!found) return entries
  if ('refused' in found) throw refusal(found.refused)
  const numbers = await numberMarks(request, found.marks, session_id)
  return on.run(request.project_id, 'rewriteEntries', entries, { ...write, numbers })
}
