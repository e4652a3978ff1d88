import { wordEnd } from './characters.js'
import type { Detector, Finding } from './detectors.js'

/** How keys begin, and their whole form from there, by vendor. Each has one class of characters and bounded counts. */
const FORMS: ReadonlyArray<readonly [Detector, string, RegExp]> = [
  ['annals', 'sk-annals-', /sk-annals-[\w-]{43}-[\w-]{6}/y],
  ['anthropic', 'sk-ant-', /sk-ant-[a-z]{3,8}\d{2}-[\w-]{60,140}/y],
  ['aws', 'AKIA', /AKIA[A-Z2-7]{16}/y],
  ['aws', 'ASIA', /ASIA[A-Z2-7]{16}/y],
  ['databricks', 'dapi', /dapi[0-9a-f]{32}/y],
  ['digitalocean', 'dop_v1_', /dop_v1_[0-9a-f]{64}/y],
  ['digitalocean', 'doo_v1_', /doo_v1_[0-9a-f]{64}/y],
  ['digitalocean', 'dor_v1_', /dor_v1_[0-9a-f]{64}/y],
  ['github', 'github_pat_', /github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}/y],
  ...['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_'].map(
    (prefix) => ['github', prefix, /gh[pousr]_[A-Za-z0-9]{36,255}/y] as const,
  ),
  ...['glpat-', 'gldt-', 'glrt-', 'glptt-', 'glcbt-', 'glft-', 'glsoat-'].map(
    (prefix) => ['gitlab', prefix, /gl[a-z]{2,4}-[\w-]{20,64}/y] as const,
  ),
  ['google', 'AIza', /AIza[\w-]{35}/y],
  ['google', 'GOCSPX-', /GOCSPX-[\w-]{28}/y],
  ['google', 'ya29', /ya29\.[\w-]{40,400}/y],
  ['huggingface', 'hf_', /hf_[A-Za-z0-9]{34,40}/y],
  ['npm', 'npm_', /npm_[A-Za-z0-9]{36}/y],
  ['openai', 'sk-proj-', /sk-proj-[\w-]{40,200}/y],
  ['openai', 'sk-svcacct-', /sk-svcacct-[\w-]{40,200}/y],
  ['openai', 'sk-admin-', /sk-admin-[\w-]{40,200}/y],
  ['openai', 'sk-', /sk-[A-Za-z0-9]{48,51}/y],
  ['pypi', 'pypi-AgE', /pypi-AgE[\w-]{50,300}/y],
  ['sendgrid', 'SG', /SG\.[\w-]{22}\.[\w-]{43}/y],
  ...['shpat_', 'shpca_', 'shppa_', 'shpss_'].map(
    (prefix) => ['shopify', prefix, /shp[a-z]{2}_[0-9a-fA-F]{32}/y] as const,
  ),
  ...['xoxb-', 'xoxp-', 'xoxa-', 'xoxr-', 'xoxs-', 'xoxe-', 'xapp-'].map(
    (prefix) => ['slack', prefix, /x(?:ox[a-z]|app)-[\w-]{24,200}/y] as const,
  ),
  ...['sk_live_', 'sk_test_', 'rk_live_', 'rk_test_'].map(
    (prefix) => ['stripe', prefix, /[sr]k_[a-z]{4}_[A-Za-z0-9]{16,247}/y] as const,
  ),
  ['stripe', 'whsec_', /whsec_[A-Za-z0-9+/=]{32,88}/y],
  ['twilio', 'SK', /SK[0-9a-f]{32}/y],
]

const BY_FIRST = new Map<number, Array<(typeof FORMS)[number]>>()
for (const form of FORMS) {
  const first = form[1].charCodeAt(0)
  BY_FIRST.set(first, [...(BY_FIRST.get(first) ?? []), form])
}

/** Characters of the shortest key. */
export const KEY_LENGTH_MIN = 20
const DISTINCT_MIN = 8
/** What people write where a key will be. */
const PLACEHOLDER = /EXAMPLE|example|xxxx|XXXX|YOUR|your_|your-|placeholder|0000000000|123456789012/

/** The name of a branch or of a class. */
const WORDS = /^[a-z]{2,15}(?:[-_][a-z\d]{1,15}){3,}$/

/** A key that begins here, at the beginning of a word. */
export function keyAt(text: string, from: number): Finding | undefined {
  for (const [detector, prefix, form] of BY_FIRST.get(text.charCodeAt(from)) ?? []) {
    if (!text.startsWith(prefix, from)) continue
    form.lastIndex = from
    if (!form.test(text)) continue
    const to = form.lastIndex
    if (isWordEnd(text, to) && isRandom(text.slice(from + prefix.length, to))) return { from, to, detector }
  }
  return undefined
}

function isWordEnd(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  const isLetter = (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a)
  return !isLetter && !(code >= 0x30 && code <= 0x39)
}

function isRandom(body: string): boolean {
  return hasDistinct(body, DISTINCT_MIN) && !PLACEHOLDER.test(body) && !WORDS.test(body)
}

/** Whether there are so many different characters, all of them ASCII. */
function hasDistinct(body: string, least: number): boolean {
  const seen = [0, 0, 0, 0]
  let distinct = 0
  for (let at = 0; at < body.length; at++) {
    const code = body.charCodeAt(at)
    const bit = 1 << (code & 31)
    if (seen[code >> 5]! & bit) continue
    seen[code >> 5]! |= bit
    if (++distinct === least) return true
  }
  return false
}

const NAME_OF_AWS = /^(?:aws_?)?secret_?access_?key$/i
const SECRET_OF_AWS = /[\s=:>"'\\]{1,6}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])/y

/** The secret key of AWS has no form of its own, so it is known by the name that stands before it. */
export function awsSecretAfter(text: string, from: number, to: number): Finding | undefined {
  if (to - from < 15 || to - from > 21 || !NAME_OF_AWS.test(text.slice(from, to))) return undefined
  SECRET_OF_AWS.lastIndex = to
  const found = SECRET_OF_AWS.exec(text)
  if (!found || !isRandom(found[1]!)) return undefined
  const end = to + found[0].length
  return { from: end - 40, to: end, detector: 'aws' }
}

const HOOK =
  /hooks\.slack\.com\/(?:services|workflows)\/T[A-Z0-9]{8,12}\/[AB][A-Z0-9]{8,12}\/(?:\d{17,20}\/)?[A-Za-z0-9]{24}/y

/** The address to which anybody may post. */
export function slackHookAt(text: string, from: number): Finding | undefined {
  if (!text.startsWith('hooks.slack.com/', from)) return undefined
  HOOK.lastIndex = from
  return HOOK.test(text) ? { from, to: HOOK.lastIndex, detector: 'slack' } : undefined
}

/** {"alg" in base64. */
const JWT_HEADER_MIN = 8

/** Three parts in base64url, of which the first is JSON that names an algorithm. */
export function jwtAt(text: string, from: number, header_end: number): Finding | undefined {
  if (header_end - from < JWT_HEADER_MIN || header_end - from > 2_000) return undefined
  if (!text.startsWith('eyJ', from)) return undefined
  const payload_end = wordEnd(text, header_end + 1)
  if (text.charCodeAt(payload_end) !== 0x2e || payload_end - header_end < 3) return undefined
  const to = wordEnd(text, payload_end + 1)
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
  text: string,
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
