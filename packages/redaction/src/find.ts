import {
  AT,
  codesOf,
  DIGIT,
  kindAt,
  LETTER,
  OTHER,
  PERCENT,
  PLUS,
  type Reading,
  wordEnd,
  ZEROS_BEFORE,
} from './characters.js'
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
  found.clear()
  const codes = codesOf(text)
  const folded = codes ? undefined : fold(text)
  new Search(folded?.text ?? text, codes ?? codesOf(folded!.text)!, wanted, found).run()
  found.putInOrder(ZEROS_BEFORE)
  if (!folded) return
  const [from, to] = [found.from.at, found.to.at]
  for (let at = 0; at < found.length; at++) {
    from[at] = folded.places[from[at]!]!
    to[at] = folded.places[to[at]! - 1]! + 1
  }
}

class Search implements Reading {
  readonly text: string
  private end_of_key: ((from: number) => number) | undefined
  private readonly end: number

  constructor(
    text: string,
    readonly codes: Uint8Array,
    private readonly wanted: Wanted,
    private readonly found: Spans,
  ) {
    this.text = `\0${text}`
    this.end = this.text.length
  }

  run(): void {
    const { codes, end } = this
    for (let at = ZEROS_BEFORE; at < end; ) {
      const kind = kindAt(codes, at)
      if (kind === OTHER) at = codes[at] === 0x5c || codes[at] === 0x26 ? this.spelled(at) : at + 1
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
    return (this.wanted.personal && this.take(emailAround(this.codes, at, after))) || after
  }

  private phone(at: number, after: number): number {
    return (this.wanted.personal && this.take(phoneAt(this.codes, at, after))) || after
  }

  private dash(at: number): number {
    // One that is found, and not wanted, would be read to its end again and again.
    if (!this.wanted.detectors.has('private_key') || !this.text.startsWith('-----B', at)) return at + 1
    this.end_of_key ??= endsOfKeys(this.text)
    return this.take(privateKeyAt(this, at, this.end_of_key)) || at + 1
  }

  /** An `@` or a plus as it is written in URLs. */
  private escaped(at: number): number {
    const { codes } = this
    // In a URL in a URL, it is written twice.
    const from = codes[at + 1] === 0x32 && codes[at + 2] === 0x35 ? at + 3 : at + 1
    const [first, second] = [codes[from], codes[from + 1]]
    if (first === 0x34 && second === 0x30) return this.address(at, from + 2)
    if (first === 0x32 && (second === 0x42 || second === 0x62)) return this.phone(at, from + 2)
    return at + 1
  }

  /** The same as it is written in JSON and in HTML. */
  private spelled(at: number): number {
    const { codes, text } = this
    let from = at
    let next = at + 1
    if (codes[at]! === 0x5c) {
      while (codes[next]! === 0x5c) next++
      const letter = codes[next]! | 0x20
      if (letter !== 0x75 && letter !== 0x78) return next
      // Four at most belong to it.
      from = Math.max(at, next - 4)
    } else {
      const letter = codes[next]! & 0x1f
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
    const { codes, wanted } = this
    const from = afterEscape(codes, first)
    const begins = kindAt(codes, from)
    if (begins !== LETTER && begins !== DIGIT) return Math.max(from, first + 1)
    const to = wordEnd(codes, from + 1)
    // Shorter words are neither a key nor the name of one, unless these marks stand after them: : ~ . / +
    const next = codes[to]!
    const isNear = next === 0x3a || next === 0x7e || (next >= 0x2e && next <= 0x2f) || next === 0x2b
    if (wanted.secrets && (isNear || to - from >= NAME_LENGTH_MIN)) {
      const end = this.secret(from, to)
      if (end) return end
    }
    // Digits in front of letters are the beginning of a word.
    if (begins === DIGIT) {
      const isLong = to - from >= GROUP_LENGTH
      return wanted.personal && isLong ? Math.max(cardsFrom(codes, from, this.found, wanted), to) : to
    }
    const isLong = to - from >= IBAN_LENGTH_MIN || to - from === 4
    return (wanted.personal && isLong && this.take(ibanAt(codes, from))) || to
  }

  private secret(from: number, to: number): number | undefined {
    const found = this.formed(from, to) ?? this.take(awsSecretAfter(this, from, to))
    if (found) return found
    const value = assignedAfter(this, from, to)
    // What has a form of its own is called by it.
    return value && (this.formed(value.from, wordEnd(this.codes, value.from)) ?? this.take(value))
  }

  /** What has a form of its own; the word is its beginning. */
  private formed(from: number, to: number): number | undefined {
    const next = this.codes[to]!
    if (next === 0x3a) return this.beforeColon(from, to)
    if (next === 0x7e) return this.take(azureAt(this, from, to))
    const isLong = to - from >= KEY_LENGTH_MIN
    if (isLong || next === 0x2e || next === 0x2f || next === 0x2b) {
      const end = this.take(keyAt(this, from, isLong))
      if (end) return end
    }
    if (isLong) {
      const end = this.take(mailchimpAt(this, from, to))
      if (end) return end
    }
    if (next !== 0x2e) return undefined
    const token = this.take(jwtAt(this, from, to)) ?? this.take(dottedAt(this, from, to))
    if (token) return token
    return to - from === 5 ? this.take(slackHookAt(this, from)) : undefined
  }

  private beforeColon(from: number, colon: number): number | undefined {
    const next = this.codes[colon + 1]!
    if (next === 0x41) return this.take(telegramAt(this, from, colon))
    const end = next === 0x2f ? this.take(passwordAt(this, colon)) : undefined
    // What stands around the @ is no address of a person.
    return end && end + 1
  }
}

/** Where a word begins that follows an escape of JSON or of a URL, whose last characters look like its own. */
function afterEscape(codes: Uint8Array, from: number): number {
  const before = codes[from - 1]!
  if (before === 0x25 && kindAt(codes, from + 1) !== OTHER) return from + 2
  if (before !== 0x5c) return from
  const code = codes[from]!
  if (code === 0x75) return from + 5
  const isShort = code === 0x6e || code === 0x72 || code === 0x74 || code === 0x62 || code === 0x66
  return isShort ? from + 1 : from
}
