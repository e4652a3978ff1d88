import { isAlphanumeric, isDigit, type Reading, wordEnd } from './characters.js'
import type { Detector, Finding } from './detectors.js'
import { KEY_FORMS } from './key_forms.js'

interface Form {
  detector: Detector
  prefix: string
  rest: RegExp
}

/** Forms by the first two characters of their keys: all, and those that a mark divides into words. */
const FORMS = new Array<Form[] | undefined>(1 << 14).fill(undefined)
const DIVIDED_FORMS = [...FORMS]
for (const [detector, prefixes, rest] of KEY_FORMS)
  for (const prefix of prefixes) {
    const begin = beginOf(prefix.charCodeAt(0), prefix.charCodeAt(1))
    const form = { detector, prefix, rest }
    FORMS[begin] = [...(FORMS[begin] ?? []), form]
    if (/[./]|\\\.|\+\//.test(prefix + rest.source))
      DIVIDED_FORMS[begin] = [...(DIVIDED_FORMS[begin] ?? []), form]
  }

/** Both are below 128. */
function beginOf(first: number, second: number): number {
  return (first << 7) | (second & 0x7f)
}

/** Characters of the shortest key. */
export const KEY_LENGTH_MIN = 20
const DISTINCT_MIN = 8
/** What people write where a key will be. */
const PLACEHOLDER = /EXAMPLE|example|xxxx|XXXX|YOUR|your_|your-|placeholder|0000000000|123456789012/

/** The name of a branch or of a class. */
const WORDS = /^[a-z]{2,15}(?:[-_][a-z\d]{1,15}){3,}$/

/** A key that begins here, at the beginning of a word, which is shorter than a key unless it `isWhole`. */
export function keyAt(reading: Reading, from: number, isWhole: boolean): Finding | undefined {
  const { text, codes } = reading
  const forms = (isWhole ? FORMS : DIVIDED_FORMS)[beginOf(codes[from]!, codes[from + 1]!)]
  if (!forms) return undefined
  for (const { detector, prefix, rest } of forms) {
    if (!text.startsWith(prefix, from)) continue
    const body = from + prefix.length
    rest.lastIndex = body
    if (!rest.test(text)) continue
    const to = rest.lastIndex
    if (!isAlphanumeric(codes, to) && isRandom(reading, body, to)) return { from, to, detector }
  }
  return undefined
}

function isRandom({ text, codes }: Reading, from: number, to: number): boolean {
  if (!hasDistinct(codes, from, to, DISTINCT_MIN)) return false
  const body = text.slice(from, to)
  return !PLACEHOLDER.test(body) && !WORDS.test(body)
}

/** Whether there are so many different characters, all of them ASCII. */
function hasDistinct(codes: Uint8Array, from: number, to: number, least: number): boolean {
  const seen = [0, 0, 0, 0]
  let distinct = 0
  for (let at = from; at < to; at++) {
    const code = codes[at]!
    const bit = 1 << (code & 31)
    if (seen[code >> 5]! & bit) continue
    seen[code >> 5]! |= bit
    if (++distinct === least) return true
  }
  return false
}

const NAME_OF_AWS = /^(?:aws_?)?secret_?access_?key$/i
const SECRET_OF_AWS = /[\s=:>"'\\]{1,6}[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])/y

/** The secret key of AWS has no form of its own, so it is known by the name that stands before it. */
export function awsSecretAfter(reading: Reading, from: number, to: number): Finding | undefined {
  const { text } = reading
  if (to - from < 15 || to - from > 21 || !NAME_OF_AWS.test(text.slice(from, to))) return undefined
  SECRET_OF_AWS.lastIndex = to
  if (!SECRET_OF_AWS.test(text)) return undefined
  const end = SECRET_OF_AWS.lastIndex
  return isRandom(reading, end - 40, end) ? { from: end - 40, to: end, detector: 'aws' } : undefined
}

const HOOK =
  /hooks\.slack\.com\/(?:services|workflows)\/T[A-Z0-9]{8,12}\/[AB][A-Z0-9]{8,12}\/(?:\d{17,20}\/)?[A-Za-z0-9]{24}/y

/** The address to which anybody may post. */
export function slackHookAt({ text }: Reading, from: number): Finding | undefined {
  if (!text.startsWith('hooks.slack.com/', from)) return undefined
  HOOK.lastIndex = from
  return HOOK.test(text) ? { from, to: HOOK.lastIndex, detector: 'slack' } : undefined
}

/** A token of a bot of Telegram, whose number ends at \`colon\`. */
const TELEGRAM = /:AA[\w-]{33}/y
const TELEGRAM_DIGITS = { min: 8, max: 10 }

export function telegramAt(reading: Reading, from: number, colon: number): Finding | undefined {
  const { text, codes } = reading
  // In its addresses, `bot` stands before it.
  const begin = text.startsWith('bot', from) ? from + 3 : from
  const digits = colon - begin
  if (digits < TELEGRAM_DIGITS.min || digits > TELEGRAM_DIGITS.max) return undefined
  for (let at = begin; at < colon; at++) if (!isDigit(codes, at)) return undefined
  TELEGRAM.lastIndex = colon
  if (!TELEGRAM.test(text)) return undefined
  const to = TELEGRAM.lastIndex
  const isOne = !isAlphanumeric(codes, to) && isRandom(reading, colon + 3, to)
  return isOne ? { from: begin, to, detector: 'telegram' } : undefined
}

const MAILCHIMP = /[0-9a-f]{32}-us\d{1,2}/y
const MAILCHIMP_LENGTH = { min: 36, max: 37 }

export function mailchimpAt(reading: Reading, from: number, to: number): Finding | undefined {
  if (to - from < MAILCHIMP_LENGTH.min || to - from > MAILCHIMP_LENGTH.max) return undefined
  MAILCHIMP.lastIndex = from
  if (!MAILCHIMP.test(reading.text) || MAILCHIMP.lastIndex !== to) return undefined
  return isRandom(reading, from, from + 32) ? { from, to, detector: 'mailchimp' } : undefined
}

const DISCORD = /[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40}/y
const TERRAFORM = /[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,70}/y

/** Keys in parts, whose first ends at `dot`. */
export function dottedAt(reading: Reading, from: number, dot: number): Finding | undefined {
  const { text, codes } = reading
  const length = dot - from
  if (length === 14 && text.startsWith('.atlasv1.', dot)) return formAt(reading, from, TERRAFORM, 'terraform')
  if (length < 24 || length > 28 || codes[dot + 7] !== 0x2e) return undefined
  const token = formAt(reading, from, DISCORD, 'discord')
  // The first part is the bot's number.
  return token && /^\d{17,20}$/.test(decoded(text.slice(from, dot)) ?? '') ? token : undefined
}

function formAt(
  { text, codes }: Reading,
  from: number,
  form: RegExp,
  detector: Detector,
): Finding | undefined {
  form.lastIndex = from
  if (!form.test(text) || isAlphanumeric(codes, form.lastIndex)) return undefined
  return { from, to: form.lastIndex, detector }
}

const AZURE = /\dQ~[\w~.-]{31,34}/y

/** A secret of an app of Azure: its tilde stands after five characters. */
export function azureAt(reading: Reading, from: number, tilde: number): Finding | undefined {
  const { text, codes } = reading
  const digit = tilde - 2
  if (digit < from || digit - from > 3) return undefined
  AZURE.lastIndex = digit
  if (!AZURE.test(text)) return undefined
  const to = AZURE.lastIndex
  return !isAlphanumeric(codes, to) && isRandom(reading, tilde, to)
    ? { from, to, detector: 'azure' }
    : undefined
}

/** Ends of names that hold a secret, and what stands before them in programs and files; in the environment, all may. */
const SECRET_ENDS = ['key', 'token', 'secret', 'password']
const SECRET_BEGINS =
  'api app access account auth client consumer encryption master private secret service shared signing subscription'.split(
    ' ',
  )
const NAME_IN_ENVIRONMENT = /^[A-Z][A-Z0-9_]*_(?:PASSWORD|SECRET|TOKEN)$/
/** Names of what leads to a next page, and the like. */
const NO_SECRET = /(?:PAGE|NEXT|CURSOR|CSRF|XSRF|SYNC)_TOKEN$/
/** Of the name of a secret. */
export const NAME_LENGTH_MIN = 6
const NAME_LENGTH_MAX = 60
const ASSIGNED = /\\?["']?[ \t]{0,2}(?:=>?|:)[ \t]{0,2}\\?["'`]?/y
/** It holds no mark that stands between a name and its value. */
const VALUE = /[A-Za-z0-9+/][\w+/.~-]{14,198}[\w+/-]={0,2}(?![\w(=:[])/y
const VALUE_DIGITS_MIN = 3
/** By chance, even long ones have few digits. */
const IN_BASE64 = /^[A-Za-z0-9+/]{32,}={0,2}$/
/** Words and numbers with marks between them: names, versions, times, paths. */
const WORDS_AND_NUMBERS = /^(?:[A-Za-z]+|\d+)(?:[-._/~+](?:[A-Za-z]+|\d+))*$/

/** The value that is assigned to a name which says that it is a secret. */
export function assignedAfter(reading: Reading, from: number, to: number): Finding | undefined {
  const { text, codes } = reading
  if (to - from < NAME_LENGTH_MIN || to - from > NAME_LENGTH_MAX) return undefined
  const last = codes[to - 1]! | 0x20
  // Of key, token, secret and password.
  if (last !== 0x79 && last !== 0x6e && last !== 0x74 && last !== 0x64) return undefined
  ASSIGNED.lastIndex = to
  if (!ASSIGNED.test(text)) return undefined
  const begin = ASSIGNED.lastIndex
  if (!isNameOfSecret(text.slice(from, to))) return undefined
  VALUE.lastIndex = begin
  if (!VALUE.test(text)) return undefined
  const end = VALUE.lastIndex
  return isAssigned(reading, begin, end) ? { from: begin, to: end, detector: 'assigned' } : undefined
}

function isNameOfSecret(name: string): boolean {
  const lower = name.toLowerCase()
  const end = SECRET_ENDS.find((word) => lower.endsWith(word))
  if (end === undefined) return false
  if (NAME_IN_ENVIRONMENT.test(name)) return !NO_SECRET.test(name)
  const joint = lower.at(-end.length - 1)
  const length = lower.length - end.length - (joint === '_' || joint === '-' ? 1 : 0)
  return SECRET_BEGINS.some((word) => lower.endsWith(word, length))
}

function isAssigned(reading: Reading, from: number, to: number): boolean {
  let digits = 0
  for (let at = from; at < to; at++) if (isDigit(reading.codes, at)) digits++
  if (digits === 0 || digits === to - from) return false
  const value = reading.text.slice(from, to)
  if (digits < VALUE_DIGITS_MIN && !IN_BASE64.test(value)) return false
  const isPath = /^[+/]/.test(value) && !value.endsWith('=')
  return !isPath && isRandom(reading, from, to) && !WORDS_AND_NUMBERS.test(value)
}

const USER_INFO = /:\/\/([^\s:/?#@"'`<>\\]{0,80}):([^\s/?#@"'`<>\\]{4,200})@(?=[\w[])/y
/** What stands where a password will be, or where all know it. */
const NO_PASSWORD =
  /^(?:[*.x]+|[$%{[].*|pass(?:word|wd)?|pwd|secret|changeme|guest|root|admin|test|example|my.*password|your.*|db_?password)$/i

/** The password in an address, whose scheme ends at \`colon\`. */
export function passwordAt({ text }: Reading, colon: number): Finding | undefined {
  if (!text.startsWith('://', colon)) return undefined
  USER_INFO.lastIndex = colon
  const [, user, password] = USER_INFO.exec(text) ?? []
  if (password === undefined || password === user || NO_PASSWORD.test(password)) return undefined
  const to = USER_INFO.lastIndex - 1
  return { from: to - password.length, to, detector: 'url_password' }
}

/** {"alg" in base64. */
const JWT_HEADER_MIN = 8

/** Three parts in base64url, of which the first is JSON that names an algorithm. */
export function jwtAt({ text, codes }: Reading, from: number, header_end: number): Finding | undefined {
  if (header_end - from < JWT_HEADER_MIN || header_end - from > 2_000) return undefined
  if (!text.startsWith('eyJ', from)) return undefined
  const payload_end = wordEnd(codes, header_end + 1)
  if (codes[payload_end] !== 0x2e || payload_end - header_end < 3) return undefined
  const to = wordEnd(codes, payload_end + 1)
  if (to - payload_end < 20 && !text.startsWith('eyJhbGciOiJub25lI', from)) return undefined
  const header = decoded(text.slice(from, header_end))
  return header?.includes('"alg"') ? { from, to, detector: 'jwt' } : undefined
}

declare function atob(text: string): string

function decoded(base64url: string): string | undefined {
  try {
    return atob(base64url.replaceAll('-', '+').replaceAll('_', '/'))
  } catch {
    return undefined
  }
}

const BEGIN = /-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----/y
const END = '-----END '
const KEY_LENGTH_MAX = 32_768
const END_LINE = /-----END [A-Z0-9 ]{1,60}-----/y
/** What a key that was cut off consists of: base64, headers, and line breaks, also as escapes. */
const REST = /[A-Za-z0-9+/=\s\\:,-]*/y

/** A private key in PEM, whole or cut off. */
export function privateKeyAt(
  { text }: Reading,
  from: number,
  endAfter: (from: number) => number,
): Finding | undefined {
  BEGIN.lastIndex = from
  if (!BEGIN.test(text)) return undefined
  const body = BEGIN.lastIndex
  const end = endAfter(body)
  if (end !== -1 && end - body <= KEY_LENGTH_MAX) {
    END_LINE.lastIndex = end
    if (END_LINE.test(text)) return { from, to: END_LINE.lastIndex, detector: 'private_key' }
  }
  REST.lastIndex = body
  REST.test(text)
  return { from, to: Math.max(REST.lastIndex, body), detector: 'private_key' }
}

/** Looks for the end of a key, and only once where there is none. */
export function endsOfKeys(text: string): (from: number) => number {
  let known = -2
  return (from) => {
    if (known === -2 || (known !== -1 && known < from)) known = text.indexOf(END, from)
    return known
  }
}
