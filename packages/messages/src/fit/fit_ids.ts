import type { MessageFormat } from '../formats.js'
import { idAndSignature } from '../openai_in.js'

/** Ids of calls that a provider accepts. */
const IDS: Readonly<Record<MessageFormat, { foreign?: RegExp; length_max: number }>> = {
  openai: { length_max: 40 },
  anthropic: { foreign: /[^a-zA-Z0-9_-]/g, length_max: 64 },
  gemini: { length_max: 128 },
  acontext: { length_max: Number.POSITIVE_INFINITY },
  responses: { length_max: 64 },
}

const NAMES: Readonly<Record<MessageFormat, { foreign?: RegExp; length_max: number }>> = {
  openai: { foreign: /[^a-zA-Z0-9_-]/g, length_max: 64 },
  anthropic: { foreign: /[^a-zA-Z0-9_-]/g, length_max: 128 },
  gemini: { foreign: /[^a-zA-Z0-9_.:-]/g, length_max: 64 },
  acontext: { length_max: Number.POSITIVE_INFINITY },
  responses: { foreign: /[^a-zA-Z0-9_-]/g, length_max: 64 },
}

/** Stands for the name of a tool that has none. */
const NO_NAME = 'unnamed_tool'

/**
 * The name of a tool as the format takes it: the same wherever the tool is named, so that it can be declared so. A name
 * that has to change gets a digest, because `a.b` and `a:b` are two tools.
 */
export function fitName(name: string, format: MessageFormat): string {
  const { foreign, length_max } = NAMES[format]
  if (name === '' && format !== 'acontext') return NO_NAME
  const plain = foreign ? name.replace(foreign, '_') : name
  const fit = format === 'gemini' && !/^[a-zA-Z_]/.test(plain) ? `_${plain}` : plain
  return fit === name && fit.length <= length_max ? name : withDigest(fit, name, length_max)
}

/** Ids of the calls of one list: each fits the format and is unique, and the same call always gets the same. */
export class FitIds {
  private readonly used = new Set<string>()

  constructor(private readonly format: MessageFormat) {}

  /** `place`: what tells the call apart from another one of its id. */
  take(id: string, place: string): string {
    let fit = fitId(id, this.format)
    for (let nth = 1; this.used.has(fit); nth++) fit = fitId(id, this.format, `${place} ${nth}`)
    this.used.add(fit)
    return fit
  }
}

/** The id as the format takes it. What it had to lose, or another one of its id, is told apart by a digest. */
export function fitId(given: string, format: MessageFormat, other?: string): string {
  const { foreign, length_max } = IDS[format]
  const { id } = format === 'acontext' ? { id: given } : idAndSignature(given)
  const plain = foreign ? id.replace(foreign, '_') : id
  if (plain === id && id.length <= length_max && id !== '' && other === undefined) return id
  return withDigest(plain, `${given}\n${other ?? ''}`, Math.min(length_max, 64))
}

const OWN_TOOL_ID = /^srvtoolu_[a-zA-Z0-9_]+$/

/** Whether Anthropic takes an id as that of a call of one of its own tools. */
export function isOwnToolId(id: string): boolean {
  return OWN_TOOL_ID.test(id)
}

/** The id of a call of Anthropic's own tools, where another service that speaks its format made it. */
export function ownToolId(id: string): string {
  return isOwnToolId(id) ? id : withDigest(`srvtoolu_${id.replace(/[^a-zA-Z0-9_]/g, '_')}`, id, 64)
}

function withDigest(plain: string, of: string, length_max: number): string {
  const suffix = `_${digest(of)}`
  return `${cutText(plain, length_max - suffix.length)}${suffix}`
}

/** The beginning of a text, without half a character at its end, which is no valid Unicode. */
export function cutText(text: string, length_max: number): string {
  const cut = text.slice(0, length_max)
  return cut.length < text.length ? cut.replace(/[\ud800-\udbff]$/, '') : cut
}

/** 52 bits of a text, in 11 characters: two rounds of FNV-1a. Nobody has to be kept from finding two that are alike. */
function digest(text: string): string {
  let low = 0x811c9dc5
  let high = 0x01000193
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    low = Math.imul(low ^ unit, 0x01000193)
    high = Math.imul(high ^ unit ^ (low >>> 16), 0x85ebca6b)
  }
  return ((high >>> 0) & 0xfffff).toString(36).padStart(4, '0') + (low >>> 0).toString(36).padStart(7, '0')
}
