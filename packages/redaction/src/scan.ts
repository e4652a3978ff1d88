import { DETECTOR_NAMES, type Detector } from './detectors.js'
import { find, type Wanted, wantedOf } from './find.js'
import { type Action, maskName, type ReadyRule } from './rules.js'
import { type Span, Spans } from './spans.js'

/** What a rule does with what is found. */
export interface Deed {
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
  /** By the number of a detector: of the rule that decides on it. Then those of rules with patterns. */
  deeds: readonly Deed[]
  patterns: readonly Pattern[]
}

interface Pattern {
  pattern: NonNullable<ReadyRule['pattern']>
  /** The place of its deed. */
  what: number
}

function scannerOf(rules: readonly ReadyRule[]): Scanner {
  const first = new Map<Detector, Deed>()
  for (const [rank, rule] of rules.entries())
    for (const detector of rule.detectors)
      if (!first.has(detector))
        first.set(detector, { action: rule.rule.do, name: maskName(rule, detector), rank })
  const wanted = first.size > 0 ? wantedOf(first.keys()) : undefined
  const patterns: Pattern[] = []
  const deeds = DETECTOR_NAMES.map((detector) => first.get(detector) as Deed)
  for (const [rank, rule] of rules.entries()) {
    if (!rule.pattern) continue
    patterns.push({ pattern: rule.pattern, what: deeds.length })
    deeds.push({ action: rule.rule.do, name: maskName(rule, undefined), rank })
  }
  return { rules, wanted, deeds, patterns }
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

/** So many parts are remembered without need. */
const KEPT_MAX = 10_000
let scratch = new Spans()

/**
 * What rules find in a text, in order and without overlaps, until the next text is scanned. The numbers are the places of
 * deeds. Where two rules find the same, the earlier one decides.
 */
export function scan(text: string, { wanted, deeds, patterns }: Scanner): Spans {
  if (scratch.length > KEPT_MAX) scratch = new Spans()
  const hits = scratch
  if (wanted && mayHold(text)) find(text, wanted, hits)
  else hits.clear()
  if (patterns.length === 0) return hits
  for (const { pattern, what } of patterns) {
    const matcher = pattern.matcher(text)
    while (matcher.find()) {
      const [from, to] = [matcher.start(), matcher.end()]
      if (to > from) hits.add(from, to, what)
    }
  }
  merge(hits, deeds)
  return hits
}

/** Parts that overlap become one, so that nothing of either is left. */
function merge(hits: Spans, deeds: readonly Deed[]): void {
  const rankOf = ({ what }: Span) => deeds[what]!.rank
  const kept: Span[] = []
  for (const hit of hits.all().sort((one, other) => one.from - other.from || rankOf(one) - rankOf(other))) {
    const last = kept.at(-1)
    if (!last || hit.from >= last.to) {
      kept.push(hit)
      continue
    }
    last.to = Math.max(last.to, hit.to)
    if (rankOf(hit) < rankOf(last)) last.what = hit.what
  }
  hits.clear()
  for (const { from, to, what } of kept) hits.add(from, to, what)
}
