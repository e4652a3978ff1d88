import { parseJson } from '@annals/messages/json'

/** Characters of an error that are looked at: what went wrong stands at its beginning. */
const TEXT_MAX = 300
/** Lines of it that are looked at. */
const LINES_MAX = 5
/** And where the first only says that something failed. */
const CAUSE_LINES_MAX = 60
const MASK = '…'
/** Stands where lines were left out. */
const BETWEEN = '\n…\n'

/** Quoted strings. An apostrophe within a word opens none. */
const QUOTED = /"[^"]{0,200}"|`[^`]{0,200}`|(?<!\w)'[^']{0,200}'(?!\w)/g
const PREFIX = /^(?:[Ee]rror|ERROR|[Ff]ailed|[Ee]xception)\s*[:!-]\s*/

/** Lines that agents write around the output of a command, which say nothing about what went wrong. */
const AROUND =
  /^(?:(?:Command|Directory|Chunk ID|Original token count|Total output lines|Exit [Cc]ode|Signal|Background PIDs|Process Group PGID):|Wall time:? \d|Process exited with code |<returncode>|(?:Exit code -?\d{1,10}|Command (?:failed with exit|exited with) code -?\d{1,10}\.?|Script failed|Script error:|Output:|<\/?output>|<warning>|\[An error occurred during execution\.\])\s*$|(?:Output|Stdout|Stderr|Error): \((?:empty|none)\)\s*$)/
/** What begins a report: of a trace, or of a test, by its name. */
const VERDICT =
  /^(?:Traceback \(most recent call last\)|(?:FAIL|FAILED|ERROR|not ok|--- FAIL|RUNS?|[×✕✗❯●])(?![\p{L}\d])|(?:={3,80}|_{3,80}) [^=]{1,60} [=_]{3})/u
/** A line further down that says why. */
const CAUSE =
  /^(?:E {2,8})?(?:[\w.$]{0,80}(?:Error|Exception|Failure|Panic)(?: \[\w{1,60}\])?: \S|panic: |assert )/
const MARK_OF_CAUSE = /^E {2,8}/
const LABEL = /^(?:(?:Output|Stdout|Stderr): |<tool_use_error>)/
const CLOSING_TAG = /<\/tool_use_error>\s*$/
/** The beginning of what Codex keeps of a command. The rest may have been cut off. */
const OUTPUT_MEMBER = /^\s*\{\s*"output"\s*:\s*"((?:[^"\\]|\\["\\/bfnrt]){1,300})/

/**
 * What errors of one kind have in common: the text with quoted strings, and all words with digits, `@` or `/` in
 * them, masked. Empty if nothing is left that says what went wrong.
 */
export function errorTemplate(error: string): string {
  for (const line of tellingLines(messageOf(error))) {
    const template = lineTemplate(line)
    if (template !== '') return template
  }
  return ''
}

/**
 * At most so many characters of an error: its beginning, and where a report names its cause further down, whole lines and
 * the cause.
 */
export function errorExcerpt(error: string, length: number): string {
  if (error.length <= length) return error
  const shown = shownLines(error)
  const cause = VERDICT.test(shown[0] ?? '') ? causeIn(shown) : undefined
  if (cause === undefined || error.slice(0, length).includes(cause)) return `${error.slice(0, length)}…`
  const why = cause.length > length / 2 ? `${cause.slice(0, length / 2)}…` : cause
  const head_end = error.lastIndexOf('\n', length - why.length - BETWEEN.length)
  return head_end < 0 ? why : `${error.slice(0, head_end)}${BETWEEN}${why}`
}

function lineTemplate(line: string): string {
  const masked = line
    .slice(0, TEXT_MAX)
    .trim()
    .replace(PREFIX, '')
    .replace(QUOTED, MASK)
    .split(/(\s+)/)
    .map((word) => (/[\d@/\\]/.test(word) ? maskWord(word) : word))
    .join('')
    .replace(/\s+/g, ' ')
    .trim()
  return /\p{L}{3}/u.test(masked) ? masked : ''
}

/** Lines, without those that agents write around them, or for none. */
function shownLines(message: string): string[] {
  const lines = message.split('\n').filter((text) => text.trim() !== '' && text.trim() !== '(no output)')
  const telling = lines.filter((text) => !AROUND.test(text.trimStart()))
  return (telling.length > 0 ? telling : lines).map((line) => line.trim())
}

/** The first lines that may say something: one with nothing but a name, as compilers begin with, does not. */
function tellingLines(message: string): string[] {
  const shown = shownLines(message)
  const cause = VERDICT.test(shown[0] ?? '') ? causeIn(shown) : undefined
  return [...(cause === undefined ? [] : [cause]), ...shown.slice(0, LINES_MAX)].map((line) =>
    line.replace(LABEL, '').replace(CLOSING_TAG, ''),
  )
}

/** Tests and traces name their cause below what they went through. */
function causeIn(lines: string[]): string | undefined {
  return lines
    .slice(1, CAUSE_LINES_MAX)
    .find((line) => CAUSE.test(line))
    ?.replace(MARK_OF_CAUSE, '')
}

/** Keeps the punctuation around a word. */
function maskWord(word: string): string {
  const end = /[,;:.!?)\]}]{1,3}$/.exec(word.slice(-3))?.[0] ?? ''
  const start = /^[([{]/.test(word) ? word[0]! : ''
  return start + MASK + end
}

/** Results that are JSON name their error in a member. */
function messageOf(error: string): string {
  if (!error.trimStart().startsWith('{')) return error
  const output = OUTPUT_MEMBER.exec(error)?.[1]
  try {
    if (output !== undefined) return parseJson(`"${output}"`) as string
    const value = parseJson(error) as Record<string, unknown>
    const named = [value.error, value.message, value.detail, value.reason].find((text) => text != null)
    if (typeof named === 'string') return named
    const inner = (named as Record<string, unknown> | undefined)?.message
    return typeof inner === 'string' ? inner : error
  } catch {
    return error
  }
}
