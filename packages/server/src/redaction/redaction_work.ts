import { createHmac } from 'node:crypto'
import { AnnalsError } from '@annals/kits/errors.js'
import { type AttachmentLimits, readBodyJson } from '@annals/kits/http/request/read_body.js'
import type { FormParts } from '@annals/kits/http/request/take_on_thread.js'
import { takeOutBytes } from '@annals/kits/http/request/take_out_bytes.js'
import { joined, type Rewritten, rewriteFragment, rewriteJson } from '@annals/redaction'
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
const COUNTING: ReadonlySet<string> = new Set([
  'addMessage',
  'appendEntries',
  'appendToSessions',
  'retractEntries',
  'addInput',
])

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

function rewriteBody(operation: string, { text, value }: { text: string; value: unknown }, rules: RulesText) {
  const counts = COUNTING.has(operation)
  return rewriteJson(text, { rules: rulesFrom(rules), request: value ?? {}, counts })
}

function rewriteEntriesText(entries: readonly AppendedEntry[], rules: RulesText) {
  const text = textOfEntries(entries)
  return rewriteJson(text, { rules: rulesFrom(rules), request: JSON.parse(text), counts: true })
}

type Outcome = ReturnType<typeof rewriteJson>

function found(outcome: Outcome, rules: RulesText): Found {
  if (!outcome || 'refused' in outcome) return outcome
  const digest = digestBy(rules)
  const marks = new Map<string, FoundMark>()
  for (const { action, name, value, session_id } of outcome.marks) {
    if (action !== 'mask' || value === '') continue
    if (marks.size === MARKS_MAX) break
    const mark = { name, digest: digest(name, value), session_id }
    marks.set(keyOf(mark), mark)
  }
  return { marks: [...marks.values()] }
}

function masked(text: string, outcome: Outcome, { numbers, ...rules }: Rewriting): string {
  if (!outcome || 'refused' in outcome) return text
  const digest = digestBy(rules)
  return joined(outcome as Rewritten, (mark) => {
    if (mark.action === 'drop' || mark.value === '') return maskOf(mark, '', undefined)
    const own = digest(mark.name, mark.value)
    return maskOf(mark, own, numbers[keyOf({ ...mark, digest: own })])
  })
}

/** Digests of values, each computed once. */
function digestBy({ secret }: RulesText): (name: string, value: string) => string {
  const known = new Map<string, string>()
  return (name, value) => {
    const key = `${name}\n${value}`
    let digest = known.get(key)
    if (digest === undefined) {
      digest = createHmac('sha256', secret).update(key).digest('base64url').slice(0, DIGEST_LENGTH)
      known.set(key, digest)
    }
    return digest
  }
}
