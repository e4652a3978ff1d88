import { KINDS, type StatementKind } from './render.js'
import { hasSucceeded, type ShownEntry, type ShownRun } from './shown_run.js'
import { oneLine } from './text.js'

/** A statement as a model gives it. `run` is the letter under which it was shown a run. */
export interface Candidate {
  kind: string
  text: string
  /** The tool that it is about; for a procedure, the one whose call shows that a run followed it. */
  tool: string | null
  cites: readonly { run: string; seq: number; quote: string }[]
}

/** A statement that passed the gates. */
export interface PassedStatement {
  kind: StatementKind
  text: string
  tool: string | null
  cites: { session_id: string; seq: number; quote: string }[]
}

/** Why a statement was dropped. */
export type Refusal = 'form' | 'entry' | 'quote' | 'provenance' | 'person' | 'outcome'

const TEXT_LENGTH = { min: 15, max: 400 }
const QUOTE_LENGTH = { min: 8, max: 300 }
const CITES_MAX = 8
/** What nobody has to be sent to. */
const ADDRESS = /:\/\/|\bwww\./i

export const runLetter = (index: number) => String.fromCharCode(65 + index)

/**
 * Whether a model's statement may be believed as far as code can tell. The model may err, and may have been talked into
 * something by what it read, so nothing that it says of the runs is taken from it: `runs` are what it was shown.
 * `is_of_user`: the learning space belongs to one user, whose sessions these are.
 */
export function passGates(
  candidate: Candidate,
  runs: readonly ShownRun[],
  { is_of_user }: { is_of_user: boolean },
): PassedStatement | Refusal {
  const { kind, text, cites } = candidate
  if (!isKind(kind) || !hasForm(candidate)) return 'form'
  const cited: { run: ShownRun; entry: ShownEntry; quote: string }[] = []
  for (const { run: letter, seq, quote } of cites) {
    const run = runs.find((_, index) => runLetter(index) === letter)
    const entry = run?.entries.find((one) => one.seq === seq)
    if (!run || !entry) return 'entry'
    if (!isQuoteOf(quote, entry)) return 'quote'
    cited.push({ run, entry, quote })
  }
  const isOwn = cited.some(({ run, entry, quote }) => entry.source === 'agent' && !isEcho(quote, entry, run))
  if (!isOwn && !(is_of_user && (kind === 'fact' || kind === 'preference'))) return 'provenance'
  if (!is_of_user && (kind === 'preference' || namesRecord(text, runs))) return 'person'
  const called = cited.map(({ run }) => run).filter(({ tools }) => tools.includes(candidate.tool ?? ''))
  if (kind === 'procedure') {
    const evidence = candidate.tool === null ? cited.map(({ run }) => run) : called
    if (!evidence.some(({ outcome }) => hasSucceeded(outcome))) return 'outcome'
  }
  return {
    kind,
    text,
    tool: called.length > 0 ? candidate.tool : null,
    cites: cited.map(({ run, entry, quote }) => ({ session_id: run.session_id, seq: entry.seq, quote })),
  }
}

function isKind(kind: string): kind is StatementKind {
  return (KINDS as readonly string[]).includes(kind)
}

function hasForm({ text, cites }: Candidate): boolean {
  const isLong = text.length >= TEXT_LENGTH.min && text.length <= TEXT_LENGTH.max
  return (
    isLong && oneLine(text) === text && !ADDRESS.test(text) && cites.length > 0 && cites.length <= CITES_MAX
  )
}

function isQuoteOf(quote: string, { text }: ShownEntry): boolean {
  const isLong = quote.length >= QUOTE_LENGTH.min || quote === text
  return isLong && quote.length <= QUOTE_LENGTH.max && text.includes(quote)
}

/** Whether the agent said what a user or a tool had said: these are not its own words then. */
function isEcho(quote: string, { seq }: ShownEntry, { entries }: ShownRun): boolean {
  const words = plain(quote)
  return entries.some(
    (other) => other.seq < seq && other.source !== 'agent' && plainText(other).includes(words),
  )
}

const PLAIN_TEXTS = new WeakMap<ShownEntry, string>()

/** Made once: every quote is looked for in it. */
function plainText(entry: ShownEntry): string {
  const text = PLAIN_TEXTS.get(entry) ?? plain(entry.text)
  PLAIN_TEXTS.set(entry, text)
  return text
}

const plain = (text: string) =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()

/** Whether it has an address or an identifier: a word with digits that stands in the log of somebody. */
function namesRecord(text: string, runs: readonly ShownRun[]): boolean {
  const words = text.match(/[\p{L}\p{N}_@]+(?:[.-]+[\p{L}\p{N}_@]+)*/gu) ?? []
  const names = words.filter((word) => word.includes('@') || (word.length >= 4 && /\d/.test(word)))
  return names.some(
    (name) =>
      name.includes('@') || runs.some(({ entries }) => entries.some((entry) => entry.text.includes(name))),
  )
}
