import type { Detector, Finding } from './detectors.js'
import { find, type Wanted, wantedOf } from './find.js'
import { type Action, maskName, type ReadyRule } from './rules.js'

/** What a rule does with what is found. */
export interface Deed {
  action: Action
  /** Of what it is: EMAIL. */
  name: string
  /** Of its rule. */
  rank: number
}

/** A part of a text that a rule is for. */
export interface Hit {
  from: number
  to: number
  deed: Deed
}

/** Rules, made ready for many texts. */
export interface Scanner {
  rules: readonly ReadyRule[]
  wanted: Wanted | undefined
  /** Which rule decides on what a detector finds. */
  first: ReadonlyMap<Detector, Deed>
  hasPatterns: boolean
}

function scannerOf(rules: readonly ReadyRule[]): Scanner {
  const first = new Map<Detector, Deed>()
  for (const [rank, rule] of rules.entries())
    for (const detector of rule.detectors)
      if (!first.has(detector))
        first.set(detector, { action: rule.rule.do, name: maskName(rule, detector), rank })
  const wanted = first.size > 0 ? wantedOf(first.keys()) : undefined
  return { rules, wanted, first, hasPatterns: rules.some(({ pattern }) => pattern) }
}

const narrowed = new WeakMap<readonly ReadyRule[], Map<string, Scanner>>()

/** The same of those rules that fit, made once: there are few such sets, since pointers lead one way. */
export function scannerOfFitting(rules: readonly ReadyRule[], fits: (rule: ReadyRule) => boolean): Scanner {
  let key = ''
  for (const rule of rules) key += fits(rule) ? '1' : '0'
  let known = narrowed.get(rules)
  if (!known) {
    known = new Map()
    narrowed.set(rules, known)
  }
  let scanner = known.get(key)
  if (!scanner) {
    scanner = scannerOf(rules.filter((_, rank) => key[rank] === '1'))
    known.set(key, scanner)
  }
  return scanner
}

/** Characters of the shortest thing that a detector finds: a@b.cd. */
const FOUND_LENGTH_MIN = 6

/** Characters of the shortest one without such a mark: a card. */
const UNMARKED_LENGTH_MIN = 14
const MARKS = /[@+%&\\\uff05\uff06\uff0b\uff20\uff3c]/

/** Whether detectors may find something, or a text in base64. */
export function mayHold(text: string): boolean {
  if (text.length >= UNMARKED_LENGTH_MIN) return true
  return text.length >= FOUND_LENGTH_MIN && MARKS.test(text)
}

/** What rules find in a text, in order and without overlaps. Where two find the same, the earlier rule decides. */
export function scan(text: string, scanner: Scanner): Array<Hit | Finding> {
  const { rules, wanted, hasPatterns } = scanner
  const found = wanted && mayHold(text) ? find(text, wanted) : []
  if (!hasPatterns) return found
  const hits: Hit[] = found.map((one) => ({ from: one.from, to: one.to, deed: deedOf(one, scanner) }))
  for (const [rank, rule] of rules.entries()) {
    if (!rule.pattern) continue
    const deed = { action: rule.rule.do, name: maskName(rule, undefined), rank }
    const matcher = rule.pattern.matcher(text)
    while (matcher.find()) {
      const [from, to] = [matcher.start(), matcher.end()]
      if (to > from) hits.push({ from, to, deed })
    }
  }
  return merged(hits)
}

export function deedOf(found: Hit | Finding, { first }: Scanner): Deed {
  return 'deed' in found ? found.deed : first.get(found.detector)!
}

/** Parts that overlap become one, so that nothing of either is left. */
function merged(hits: Hit[]): Hit[] {
  hits.sort((one, other) => one.from - other.from || one.deed.rank - other.deed.rank)
  const kept: Hit[] = []
  for (const hit of hits) {
    const last = kept.at(-1)
    if (!last || hit.from >= last.to) {
      kept.push({ ...hit })
      continue
    }
    last.to = Math.max(last.to, hit.to)
    if (hit.deed.rank < last.deed.rank) last.deed = hit.deed
  }
  return kept
}
