import { RE2JS } from 're2js'
import { DETECTOR_NAMES, DETECTORS, type Detector, detectorsOf, GROUPS, type Group } from './detectors.js'

export const ACTIONS = ['mask', 'hash', 'drop', 'refuse'] as const
export type Action = (typeof ACTIONS)[number]
export const KINDS_OF_ENTRIES = ['event', 'message'] as const

/** Of which entries, and of which parts of these. What is absent, any fits. */
export interface Where {
  kinds?: Array<(typeof KINDS_OF_ENTRIES)[number]>
  types?: string[]
  roles?: string[]
  /** JSON pointers into an event's data or a message's blob. */
  pointers?: string[]
}

export type What = { detector: Detector | Group } | { pattern: string; as?: string }

export interface Rule {
  where?: Where
  what: What
  do: Action
  when: 'write' | 'read'
}

/** What a project has that asks for nothing else. */
export const DEFAULT_RULES: readonly Rule[] = [
  { what: { detector: 'secrets' }, do: 'mask', when: 'write' },
  { what: { detector: 'personal' }, do: 'mask', when: 'read' },
]

export const RULES_MAX = 50
/** Rules with a pattern: each looks through the whole text once more. */
export const PATTERNS_MAX = 10
export const PATTERN_LENGTH_MAX = 500
/** Of all patterns, repetitions written out: each may cost about 50 ns for each character. */
const INSTRUCTIONS_MAX = 200
const MASK_DEFAULT = 'REDACTED'

/** Why rules cannot be used, and which: a JSON pointer. */
export interface RuleFault {
  pointer: string
  reason: string
}

/** A rule that is ready for use. */
export interface ReadyRule {
  rule: Rule
  detectors: ReadonlySet<Detector>
  pattern: RE2JS | undefined
  /** Of its masks; undefined: the detector's own. */
  mask: string | undefined
  /** Tokens of its pointers. */
  pointers: string[][] | undefined
}

/** What rules say that a schema does not. */
export function faultOf(rules: readonly Rule[]): RuleFault | undefined {
  let patterns = 0
  let instructions = 0
  for (const [index, { where, what, do: action, when }] of rules.entries()) {
    const place = `/rules/${index}`
    const fault = (at: string, reason: string) => ({ pointer: `${place}${at}`, reason })
    if ('pattern' in what) {
      patterns += 1
      if (patterns > PATTERNS_MAX) return fault('/what/pattern', `there may be ${PATTERNS_MAX} patterns`)
      const measured = measurePattern(what.pattern)
      if (typeof measured === 'string') return fault('/what/pattern', measured)
      instructions += measured
      if (instructions > INSTRUCTIONS_MAX)
        return fault('/what/pattern', 'it repeats too much, with those before it: it would take too long')
    } else if (!isDetector(what.detector)) return fault('/what/detector', 'there is no such detector')
    if (when === 'read' && action === 'refuse')
      return fault('/do', 'reading is never refused: use mask, hash or drop')
    if (when === 'read' && where !== undefined)
      return fault(
        '/where',
        'a rule for reading holds for all that is read, since an entry is read in many forms: leave where out',
      )
    if (where?.types && where.kinds && !where.kinds.includes('event'))
      return fault('/where/types', 'only events have types')
    if (where?.roles && where.kinds && !where.kinds.includes('message'))
      return fault('/where/roles', 'only messages have roles')
    const wrong = where?.pointers?.findIndex((pointer) => !isPointer(pointer)) ?? -1
    if (wrong !== -1)
      return fault(`/where/pointers/${wrong}`, 'it is no JSON pointer: it begins with /, and ~ is written ~0')
  }
  return undefined
}

function isDetector(name: string): boolean {
  return (DETECTOR_NAMES as string[]).includes(name) || (GROUPS as readonly string[]).includes(name)
}

const POINTER = /^(?:\/(?:[^~/]|~[01])*)*$/

function isPointer(pointer: string): boolean {
  return POINTER.test(pointer)
}

/** How large a pattern is, or why it cannot be used. */
function measurePattern(pattern: string): number | string {
  if (pattern.length > PATTERN_LENGTH_MAX) return `it is longer than ${PATTERN_LENGTH_MAX} characters`
  try {
    const compiled = RE2JS.compile(pattern)
    if (compiled.matcher('').find()) return 'it fits an empty text, so it would be found everywhere'
    return compiled.programSize()
  } catch (error) {
    return `RE2 does not take it: ${(error as Error).message}`
  }
}

/** @param rules without faults */
export function readyRules(rules: readonly Rule[]): ReadyRule[] {
  return rules.map((rule) => {
    const { what, where } = rule
    const isPattern = 'pattern' in what
    return {
      rule,
      detectors: new Set(isPattern ? [] : detectorsOf(what.detector)),
      pattern: isPattern ? RE2JS.compile(what.pattern) : undefined,
      mask: isPattern ? (what.as ?? MASK_DEFAULT) : undefined,
      pointers: where?.pointers?.map(tokensOf),
    }
  })
}

function tokensOf(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))
}

export function maskName({ mask }: ReadyRule, detector: Detector | undefined): string {
  return mask ?? DETECTORS[detector!].mask
}
