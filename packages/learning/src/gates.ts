import { KINDS, type StatementKind } from './render.js'
import { type HeardEntry, hasSucceeded, type ShownEntry, type ShownRun } from './shown_run.js'
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
const TOOL_LENGTH_MAX = 100
/**
 * What nobody has to be sent to: links, hosts with a path, hosts under domains that anybody can have, and addresses of
 * machines. Names of files and of members of code, which have dots as well, may be said.
 */
const ADDRESSES = [
  /:\/\/|\bwww\./,
  /[\p{L}\p{N}-][.。｡][a-z]{2,24}\//u,
  /[\p{L}\p{N}-][.。｡](?:com|net|org|info|biz|io|ai|dev|app|co|xyz|top|site|online|shop|link|click|live|cloud|me|cc|tv|ru|cn|de|uk|eu|us|onion|local|internal|example|invalid|test)(?![\p{L}\p{N}-])/u,
  /\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b|\[[0-9a-f]{0,4}:[0-9a-f:.]{2,40}\]/,
]
/** What nobody has to carry out: a shell that is given what somebody sends, and what fetches or unpacks that. */
const COMMANDS = [
  /\| ?(?:sudo )?(?:sh|bash|zsh|dash|ksh|fish|pwsh|powershell|cmd|python|python3|perl|ruby|node|php|iex|xargs|tee)\b/,
  /[$<]\(|\b(?:curl|wget|iwr|invoke-webrequest|invoke-expression)\b|\bbase64 (?:-d|--decode)\b/,
  /\b(?:bash|sh|zsh|python3?|perl|ruby|node|php) -[ce]\b|\brm -rf?\b/,
]

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

function hasForm({ text, tool, cites }: Candidate): boolean {
  const isLong = text.length >= TEXT_LENGTH.min && text.length <= TEXT_LENGTH.max
  const isCited = cites.length > 0 && cites.length <= CITES_MAX
  const isNamed = tool === null || tool.length <= TOOL_LENGTH_MAX
  const said = folded(text)
  const leads = [...ADDRESSES, ...COMMANDS].some((pattern) => pattern.test(said))
  return isLong && isCited && isNamed && oneLine(text) === text && !leads
}

function isQuoteOf(quote: string, { text }: ShownEntry): boolean {
  const isLong = quote.length >= QUOTE_LENGTH.min || quote === text
  return isLong && quote.length <= QUOTE_LENGTH.max && plain(quote) !== '' && text.includes(quote)
}

/** Whether the agent said what a user or a tool had said: these are not its own words then. */
function isEcho(quote: string, { seq }: ShownEntry, { heard }: ShownRun): boolean {
  const words = plain(quote)
  return heard.some((other) => other.seq < seq && wordsHeard(other).includes(words))
}

const WORDS_HEARD = new WeakMap<HeardEntry, string>()

/** The words of an entry, made once: every quote is looked for in them. */
export function wordsHeard(entry: HeardEntry): string {
  const words = WORDS_HEARD.get(entry) ?? plain(entry.text)
  WORDS_HEARD.set(entry, words)
  return words
}

const folded = (text: string) => text.normalize('NFKC').toLowerCase()

const plain = (text: string) =>
  folded(text)
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()

/** Whether it has an address or an identifier: a word with digits that stands, however it is written, in the log of somebody. */
function namesRecord(text: string, runs: readonly ShownRun[]): boolean {
  const words = folded(text).match(/[\p{L}\p{N}_@]+(?:[.-]+[\p{L}\p{N}_@]+)*/gu) ?? []
  const names = words.filter((word) => word.includes('@') || (word.length >= 4 && /\p{N}/u.test(word)))
  if (names.some((name) => name.includes('@'))) return true
  return (
    names.length > 0 &&
    runs.some(({ entries }) =>
      entries.some((entry) => names.some((name) => folded(entry.text).includes(name))),
    )
  )
}
