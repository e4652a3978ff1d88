import { AnnalsError } from '@annals/kits/errors.js'
import { hmacWith } from '@annals/kits/hmac.js'
import { type AttachmentLimits, readBodyFirst } from '@annals/kits/http/request/read_body.js'
import type { FormParts } from '@annals/kits/http/request/take_on_thread.js'
import { takeOutBytes } from '@annals/kits/http/request/take_out_bytes.js'
import { type Mark, type Refused, type Rewritten, rewriteFragment, rewriteJson } from '@annals/redaction'
import type { AppendedEntry } from '../log/append/append_request.js'
import { rewrittenEntries, textOfEntries } from './entries_text.js'
import { type FoundMarks, maskOf, type Numbers } from './masks.js'
import { type RulesText, rulesFrom } from './rules_of.js'

/** Findings of rules: values that want a number, or why nothing is stored. Undefined: none. */
export type Found = { marks: FoundMarks[] } | Refused | undefined

/** How a text is rewritten: by rules, with the numbers of masks. */
export interface Rewriting extends RulesText {
  numbers: Numbers
}

declare module '@annals/kits/threads/work_thread.js' {
  interface ThreadWork extends RedactionWork {}
}

interface RedactionWork {
  findInBody(
    operation: string,
    bytes: Uint8Array,
    limits: AttachmentLimits | undefined,
    rules: RulesText,
  ): Found
  findInForm(
    operation: string,
    content_type: string,
    bytes: Uint8Array,
    limits: AttachmentLimits,
    rules: RulesText,
  ): Promise<Found>
  findInAnswer(text: string, rules: RulesText): Found
  maskAnswer(text: string, rewriting: Rewriting): string
  findInEntries(entries: readonly AppendedEntry[], rules: RulesText): Found
  rewriteEntries(entries: readonly AppendedEntry[], rewriting: Rewriting): AppendedEntry[]
}

/** Values that get numbers in one request; the masks of all others have none. */
const NUMBERED_MAX = 5_000
const DIGEST_LENGTH = 22
/** Of these, messages get counts. */
const COUNTING: ReadonlySet<string> = new Set(
  'addMessage appendEntries appendToSessions retractEntries addInput'.split(' '),
)

/** The same on the event loop, for short texts. */
export const redactionHere: Pick<RedactionWork, 'findInAnswer' | 'maskAnswer'> = {
  findInAnswer: (text, rules) => found(rewriteAnswer(text, rules), rules),
  maskAnswer: (text, rewriting) => masked(text, rewriteAnswer(text, rewriting), rewriting),
}

/** Work of the second thread for rules. @param forms how forms are read, by operation */
export function redactionWork(forms: Readonly<Record<string, FormParts>>): RedactionWork {
  return {
    ...redactionHere,
    findInBody: (operation, bytes, limits, rules) => {
      const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      const json = readBodyFirst(withoutBytes(body, limits))
      // It is refused for that when it is taken.
      if (json instanceof AnnalsError) return undefined
      return found(rewriteBody(operation, json, rules), rules)
    },
    findInForm: async (operation, content_type, bytes, limits, rules) => {
      const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      const form = await forms[operation]!.read(content_type, body, limits.blob_bytes_max)
      if (form instanceof AnnalsError) return undefined
      const json = readBodyFirst(forms[operation]!.attaches ? withoutBytes(form.body, limits) : form.body)
      return json instanceof AnnalsError ? undefined : found(rewriteBody(operation, json, rules), rules)
    },
    findInEntries: (entries, rules) => found(rewriteEntriesText(entries, rules), rules),
    rewriteEntries: (entries, rewriting) => {
      const text = masked('', rewriteEntriesText(entries, rewriting), rewriting)
      return text === '' ? [...entries] : rewrittenEntries(entries, text)
    },
  }
}

/** Bytes of attachments are not looked through, and are taken out of a body before it is. */
function withoutBytes(body: Buffer, limits: AttachmentLimits | undefined): Buffer {
  return limits ? takeOutBytes(body, limits.rest_bytes_max, limits.blob_bytes_max).body : body
}

/** Rewrites a body before it is taken; undefined: there is nothing to rewrite. */
export function rewriteTaken(
  operation: string,
  json: { text: string; value: unknown },
  rewriting: unknown,
): string | undefined {
  const outcome = rewriteBody(operation, json, rewriting as Rewriting)
  return outcome && masked(json.text, outcome, rewriting as Rewriting)
}

export function findInJson(
  operation: string,
  json: { text: string; value: unknown },
  rules: RulesText,
): Found {
  return found(rewriteBody(operation, json, rules), rules)
}

type Outcome = Rewritten | Refused | undefined

/** What was found in the last text, which is rewritten right after that, as a rule. */
let last: { what: string; text: string; of: string; outcome: Outcome } | undefined

function onceInARow(what: string, text: string, rules: RulesText, rewrite: () => Outcome): Outcome {
  const of = rules.secret + rules.rules
  const known = last
  last = undefined
  if (known?.text === text && known.what === what && known.of === of) return known.outcome
  const outcome = rewrite()
  if (outcome) last = { what, text, of, outcome }
  return outcome
}

function rewriteBody(operation: string, { text, value }: { text: string; value: unknown }, rules: RulesText) {
  const counts = COUNTING.has(operation)
  return onceInARow(operation, text, rules, () => rewriteRequest(text, value ?? {}, counts, rules))
}

function rewriteRequest(text: string, request: unknown, counts: boolean, rules: RulesText): Outcome {
  return rewriteJson(text, { rules: rulesFrom(rules), request, counts, numbered_max: NUMBERED_MAX })
}

function rewriteAnswer(text: string, rules: RulesText): Outcome {
  return onceInARow('', text, rules, () => rewriteFragment(text, rulesFrom(rules), NUMBERED_MAX))
}

function rewriteEntriesText(entries: readonly AppendedEntry[], rules: RulesText) {
  const text = textOfEntries(entries)
  return rewriteRequest(text, JSON.parse(text), true, rules)
}

function found(outcome: Outcome, { secret }: RulesText): Found {
  if (!outcome || 'refused' in outcome) return outcome
  const digestOf = digestsWith(secret)
  const marks = outcome.kinds.map(({ name, session_id, numbered }) => {
    return { name, session_id, digests: numbered.map(digestOf) }
  })
  return { marks }
}

function masked(text: string, outcome: Outcome, { numbers, secret }: Rewriting): string {
  if (!outcome || 'refused' in outcome) return text
  const byKind = new Map(outcome.kinds.map((kind, index) => [kind, numbers[index]]))
  const digestOf = digestsWith(secret)
  return outcome.text((mark) => {
    const { kind, place } = mark
    if (kind.action === 'hash' && mark.value !== '') return maskOf(kind, digestOf(mark))
    return maskOf(kind, '', place === undefined ? 0 : byKind.get(kind)?.[place])
  })
}

function digestsWith(secret: string): (mark: Mark) => string {
  const digest = hmacWith(secret)
  return ({ kind, value }) => digest(`${kind.name}\n${value}`).slice(0, DIGEST_LENGTH)
}
