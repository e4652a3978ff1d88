import { createHmac } from 'node:crypto'
import { AnnalsError } from '@annals/kits/errors.js'
import { type AttachmentLimits, readBodyJson } from '@annals/kits/http/request/read_body.js'
import type { FormParts } from '@annals/kits/http/request/take_on_thread.js'
import { takeOutBytes } from '@annals/kits/http/request/take_out_bytes.js'
import type { Mark, Rewritten } from '@annals/redaction'
import { joined, onceAValue, rewriteFragment, rewriteJson } from '@annals/redaction'
import type { AppendedEntry } from '../log/append/append_request.js'
import { rewrittenEntries, textOfEntries } from './entries_text.js'
import { type FoundMark, keyOf, maskOf, type Numbers } from './masks.js'
import { type RulesText, rulesFrom } from './rules_of.js'

/** Findings of rules: values that want a number, or why nothing is stored. Undefined: none. */
export type Found = { marks: FoundMark[] } | { refused: { pointer: string; name: string } } | undefined

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
const MARKS_MAX = 5_000
const DIGEST_LENGTH = 22
/** Of these, messages get counts. */
const COUNTING: ReadonlySet<string> = new Set(
  'addMessage appendEntries appendToSessions retractEntries addInput'.split(' '),
)

/** The same on the event loop, for short texts. */
export const redactionHere: Pick<RedactionWork, 'findInAnswer' | 'maskAnswer'> = {
  findInAnswer: (text, rules) => found(rewriteFragment(text, rulesFrom(rules)), rules),
  maskAnswer: (text, rewriting) => masked(text, rewriteFragment(text, rulesFrom(rewriting)), rewriting),
}

/** Work of the second thread for rules. @param forms how forms are read, by operation */
export function redactionWork(forms: Readonly<Record<string, FormParts>>): RedactionWork {
  return {
    ...redactionHere,
    findInBody: (operation, bytes, limits, rules) => {
      const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      const json = readBodyJson(withoutBytes(body, limits))
      // It is refused for that when it is taken.
      if (json instanceof AnnalsError) return undefined
      return found(rewriteBody(operation, json, rules), rules)
    },
    findInForm: async (operation, content_type, bytes, limits, rules) => {
      const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      const form = await forms[operation]!.read(content_type, body, limits.blob_bytes_max)
      if (form instanceof AnnalsError) return undefined
      const json = readBodyJson(forms[operation]!.attaches ? withoutBytes(form.body, limits) : form.body)
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

/** What was found in the last body, which is taken right after that, as a rule. */
let last: { operation: string; text: string; of: string; outcome: Outcome } | undefined

function rewriteBody(operation: string, { text, value }: { text: string; value: unknown }, rules: RulesText) {
  const of = rules.secret + rules.rules
  const known = last
  last = undefined
  if (known?.text === text && known.operation === operation && known.of === of) return known.outcome
  const options = { rules: rulesFrom(rules), request: value ?? {}, counts: COUNTING.has(operation) }
  const outcome = rewriteJson(text, options)
  if (outcome) last = { operation, text, of, outcome }
  return outcome
}

function rewriteEntriesText(entries: readonly AppendedEntry[], rules: RulesText) {
  const text = textOfEntries(entries)
  return rewriteJson(text, { rules: rulesFrom(rules), request: JSON.parse(text), counts: true })
}

type Outcome = ReturnType<typeof rewriteJson>

function found(outcome: Outcome, rules: RulesText): Found {
  if (!outcome || 'refused' in outcome) return outcome
  const marks: FoundMark[] = []
  const take = onceAValue((mark) => marks.push(foundMark(mark, rules)))
  for (const mark of outcome.marks) {
    if (mark.action !== 'mask' || mark.value === '') continue
    if (marks.length === MARKS_MAX) break
    take(mark)
  }
  return { marks }
}

function masked(text: string, outcome: Outcome, { numbers, ...rules }: Rewriting): string {
  if (!outcome || 'refused' in outcome) return text
  let count = 0
  const named = onceAValue((mark) => {
    const isBare = mark.action === 'drop' || mark.value === ''
    // Those after the first have no number, and need no digest.
    if (isBare || (mark.action === 'mask' && ++count > MARKS_MAX)) return maskOf(mark, '', undefined)
    const known = foundMark(mark, rules)
    return maskOf(mark, known.digest, numbers[keyOf(known)])
  })
  return joined(outcome as Rewritten, named)
}

/** Each is asked for twice. */
const digested = new WeakMap<Mark, FoundMark>()

function foundMark(mark: Mark, { secret }: RulesText): FoundMark {
  const known = digested.get(mark)
  if (known) return known
  const { name, value, session_id } = mark
  const hmac = createHmac('sha256', secret).update(`${name}\n${value}`)
  const made = { name, digest: hmac.digest('base64url').slice(0, DIGEST_LENGTH), session_id }
  digested.set(mark, made)
  return made
}
