import type { Detector } from './detectors.js'
import { find, type Wanted, wantedOf } from './find.js'
import { type Action, maskName, type ReadyRule } from './rules.js'

/** A part of a text that a rule is for. */
export interface Hit {
  from: number
  to: number
  action: Action
  /** Of what it is: EMAIL. */
  name: string
  /** Of its rule. */
  rank: number
}

/** Rules, made ready for many texts. */
export interface Scanner {
  rules: readonly ReadyRule[]
  wanted: Wanted | undefined
  /** Which rule decides on what a detector finds. */
  first: ReadonlyMap<Detector, Pick<Hit, 'action' | 'name' | 'rank'>>
  hasPatterns: boolean
}

export function scannerOf(rules: readonly ReadyRule[]): Scanner {
  const first = new Map<Detector, Pick<Hit, 'action' | 'name' | 'rank'>>()
  for (const [rank, rule] of rules.entries())
    for (const detector of rule.detectors)
      if (!first.has(detector))
        first.set(detector, { action: rule.rule.do, name: maskName(rule, detector), rank })
  const wanted = first.size > 0 ? wantedOf(first.keys()) : undefined
  return { rules, wanted, first, hasPatterns: rules.some(({ pattern }) => pattern) }
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
export function scan(text: string, { rules, wanted, first, hasPatterns }: Scanner): Hit[] {
  const hits: Hit[] = []
  if (wanted && mayHold(text))
    for (const { from, to, detector } of find(text, wanted)) {
      const { action, name, rank } = first.get(detector)!
      hits.push({ from, to, action, name, rank })
    }
  if (!hasPatterns) return hits
  for (const [rank, rule] of rules.entries()) {
    const matcher = rule.pattern?.matcher(text)
    while (matcher?.find()) {
      const [from, to] = [matcher.start(), matcher.end()]
      if (to > from) hits.push({ from, to, action: rule.rule.do, name: maskName(rule, undefined), rank })
    }
  }
  return merged(hits)
}

/** Parts that overlap become one, so that nothing of either is left. */
function merged(hits: Hit[]): Hit[] {
  hits.sort((one, other) => one.from - other.from || one.rank - other.rank)
  const kept: Hit[] = []
  for (const hit of hits) {
    const last = kept.at(-1)
    if (!last || hit.from >= last.to) {
      kept.push({ ...hit })
      continue
    }
    last.to = Math.max(last.to, hit.to)
    if (hit.rank < last.rank) Object.assign(last, { action: hit.action, name: hit.name, rank: hit.rank })
  }
  return kept
}
