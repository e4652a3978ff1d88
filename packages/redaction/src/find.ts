import { AT, DIGIT, KINDS, kindAt, LETTER, PERCENT, PLUS, wordEnd } from './characters.js'
import { DETECTOR_NUMBERS, DETECTORS, type Detector, type Finding, type Group } from './detectors.js'
import { fold } from './fold.js'
import { cardsFrom, emailAround, GROUP_LENGTH, ibanAt, phoneAt } from './personal.js'
import {
  assignedAfter,
  awsSecretAfter,
  azureAt,
  dottedAt,
  endsOfKeys,
  jwtAt,
  KEY_LENGTH_MIN,
  keyAt,
  mailchimpAt,
  NAME_LENGTH_MIN,
  passwordAt,
  privateKeyAt,
  slackHookAt,
  telegramAt,
} from './secrets.js'
import type { Spans } from './spans.js'

const IBAN_LENGTH_MIN = 15
const AT_OR_PLUS =
  /\\{1,4}(?:u00|x|u\{0{0,4})(?:40|2b)\}?|&(?:#0{0,5}(?:64|43)|#x0{0,4}(?:40|2b)|commat|plus);/iy

/** What is looked for. */
export interface Wanted {
  detectors: ReadonlySet<Detector>
  secrets: boolean
  personal: boolean
}

export function wantedOf(detectors: Iterable<Detector>): Wanted {
  const all = new Set(detectors)
  const wants = (group: Group) => [...all].some((detector) => DETECTORS[detector].of === group)
  return { detectors: all, secrets: wants('secrets'), personal: wants('personal') }
}

/**
 * Finds what these detectors know, in order and without overlaps, in one pass: the time is linear in the text, whatever
 * it is. Characters that look like others, or are not seen, hide nothing. `found` is emptied first; its numbers are
 * those of detectors.
 */
export function find(text: string, wanted: Wanted, found: Spans): void {
  const folded = fold(text)
  found.clear()
  // Reading beyond the ends of a text, or in a part of a longer one, takes longer.
  new Search(`\0${folded?.text ?? text}\0\0\0\0`, wanted, found).run()
  found.putInOrder()
  const [from, to] = [found.from.at, found.to.at]
  for (let at = 0; at < found.length; at++) {
    from[at] = folded ? folded.places[from[at]! - 1]! : from[at]! - 1
    to[at] = folded ? folded.places[to[at]! - 2]! + 1 : to[at]! - 1
  }
}

class Search {
  private end_of_key: ((from: number) => number) | undefined

  constructor(
    private readonly text: string,
    private readonly wanted: Wanted,
    private readonly found: Spans,
  ) {}

  run(): void {
    const { text } = this
    const { length } = text
    for (let at = 0; at < length; ) {
      const code = text.charCodeAt(at)
      const kind = code < 128 ? KINDS[code]! : 0
      if (kind === 0) at = code === 0x5c || code === 0x26 ? this.spelled(at) : at + 1
      else if (kind === LETTER || kind === DIGIT) at = this.word(at)
      else if (kind === AT) at = this.address(at, at + 1)
      else if (kind === PLUS) at = this.phone(at, at + 1)
      else if (kind === PERCENT) at = this.escaped(at)
      else at = this.dash(at)
    }
  }

  private take(finding: Finding | undefined): number | undefined {
    if (!finding || !this.wanted.detectors.has(finding.detector)) return undefined
    this.found.add(finding.from, finding.to, DETECTOR_NUMBERS[finding.detector])
    return finding.to
  }

  private address(at: number, after: number): number {
    return (this.wanted.personal && this.take(emailAround(this.text, at, after))) || after
  }

  private phone(at: number, after: number): number {
    return (this.wanted.personal && this.take(phoneAt(this.text, at, after))) || after
  }

  private dash(at: number): number {
    // One that is found, and not wanted, would be read to its end again and again.
    if (!this.wanted.detectors.has('private_key') || !this.text.startsWith('-----B', at)) return at + 1
    this.end_of_key ??= endsOfKeys(this.text)
    return this.take(privateKeyAt(this.text, at, this.end_of_key)) || at + 1
  }

  /** An `@` or a plus as it is written in URLs. */
  private escaped(at: number): number {
    const { text } = this
    // In a URL in a URL, it is written twice.
    const code = text.startsWith('25', at + 1) ? at + 3 : at + 1
    if (text.startsWith('40', code)) return this.address(at, code + 2)
    if (text.startsWith('2B', code) || text.startsWith('2b', code)) return this.phone(at, code + 2)
    return at + 1
  }

  /** The same as it is written in JSON and in HTML. */
  private spelled(at: number): number {
    const { text } = this
    let from = at
    let next = at + 1
    if (text.charCodeAt(at) === 0x5c) {
      while (text.charCodeAt(next) === 0x5c) next++
      const letter = text.charCodeAt(next) | 0x20
      if (letter !== 0x75 && letter !== 0x78) return next
      // Four at most belong to it.
      from = Math.max(at, next - 4)
    } else {
      const letter = text.charCodeAt(next) & 0x1f
      // Those of #, c and p.
      if (letter !== 0x03 && letter !== 0x10) return next
    }
    AT_OR_PLUS.lastIndex = from
    const [spelling] = AT_OR_PLUS.exec(text) ?? []
    if (spelling === undefined) return next
    const isPlus = /2b[;}]?$|43;$|plus;$/i.test(spelling)
    return isPlus ? this.phone(from, from + spelling.length) : this.address(from, from + spelling.length)
  }

  /** What begins with a letter or a digit; returns where to go on. */
  private word(first: number): number {
    const { text, wanted } = this
    const from = afterEscape(text, first)
    const begins = kindAt(text, from)
    if (begins !== LETTER && begins !== DIGIT) return Math.max(from, first + 1)
    const to = wordEnd(text, from + 1)
    // Shorter words are neither a key nor the name of one, unless these marks stand after them: : ~ . / +
    const next = text.charCodeAt(to)
    const isNear = next === 0x3a || next === 0x7e || (next >= 0x2e && next <= 0x2f) || next === 0x2b
    if (wanted.secrets && (isNear || to - from >= NAME_LENGTH_MIN)) {
      const end = this.secret(from, to)
      if (end) return end
    }
    // Digits in front of letters are the beginning of a word.
    if (begins === DIGIT) {
      const isLong = to - from >= GROUP_LENGTH
      return wanted.personal && isLong ? Math.max(cardsFrom(text, from, this.found, wanted), to) : to
    }
    const isLong = to - from >= IBAN_LENGTH_MIN || to - from === 4
    return (wanted.personal && isLong && this.take(ibanAt(text, from))) || to
  }

  private secret(from: number, to: number): number | undefined {
    const found = this.formed(from, to) ?? this.take(awsSecretAfter(this.text, from, to))
    if (found) return found
    const value = assignedAfter(this.text, from, to)
    // What has a form of its own is called by it.
    return value && (this.formed(value.from, wordEnd(this.text, value.from)) ?? this.take(value))
  }

  /** What has a form of its own; the word is its beginning. */
  private formed(from: number, to: number): number | undefined {
    const { text } = this
    const next = text.charCodeAt(to)
    if (next === 0x3a) return this.beforeColon(from, to)
    if (next === 0x7e) return this.take(azureAt(text, from, to))
    const isLong = to - from >= KEY_LENGTH_MIN
    if (isLong || next === 0x2e || next === 0x2f || next === 0x2b) {
      const end = this.take(keyAt(text, from, isLong))
      if (end) return end
    }
    if (isLong) {
      const end = this.take(mailchimpAt(text, from, to))
      if (end) return end
    }
    if (next !== 0x2e) return undefined
    const token = this.take(jwtAt(text, from, to)) ?? this.take(dottedAt(text, from, to))
    if (token) return token
    return to - from === 5 ? this.take(slackHookAt(text, from)) : undefined
  }

  private beforeColon(from: number, colon: number): number | undefined {
    const { text } = this
    const next = text.charCodeAt(colon + 1)
    if (next === 0x41) return this.take(telegramAt(text, from, colon))
    const end = next === 0x2f ? this.take(passwordAt(text, colon)) : undefined
    // What stands around the @ is no address of a person.
    return end && end + 1
  }
}

/** Where a word begins that follows an escape of JSON or of a URL, whose last characters look like its own. */
function afterEscape(text: string, from: number): number {
  const before = text.charCodeAt(from - 1)
  if (before === 0x25 && kindAt(text, from + 1) !== 0) return from + 2
  if (before !== 0x5c) return from
  const code = text[from]!
  if (code === 'u') return from + 5
  return 'nrtbf'.includes(code) ? from + 1 : from
}
