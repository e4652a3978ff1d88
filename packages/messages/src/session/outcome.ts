import { isObject } from '../blob_reading.js'

/** A run's outcome, from its configs; Annals itself does not know it. */
export interface Outcome {
  verdict: 'failed' | 'passed'
  /** The member with the outcome. */
  path: string[]
  value: unknown
}

/** A project's own words for outcomes, such as `submitted`, in any case, and what each means. */
export type OutcomeWords = Readonly<Record<string, Outcome['verdict']>>

/** Members that say in a word how a run ended. */
const WORD_KEY = /^(?:status|outcome|result|state|verdict|exit_?status)$/i

/** What people, benchmarks and frameworks call it. Not `cancelled`, `skipped` and the like, which are neither. */
const FAILED =
  /^(?:fail(?:s|ed|ure|ing)?|err(?:or(?:ed|s)?)?|error(?:[_-][\w-]*|:.*)|crash(?:ed)?|abort(?:ed)?|(?:agent[_ -])?timed?[_ -]?out|expired|killed|lost|g[ai]ve[_ -]up|given[_ -]up|stuck|wrong(?:[_ -]answer)?|broken|invalid|rejected|refuted|(?:un|not[_ -])(?:successful|success|resolved|solved|fixed|passed|completed?|finished|accepted|satisfied|achieved)|in(?:correct|complete)|not[_ -]correct|(?:max|exceeded|limit)[_-][\w-]*|[\w -]{1,40}[_ -](?:exceeded|limit[_ -]reached))$/i
const PASSED =
  /^(?:pass(?:es|ed|ing)?|succe(?:ss|eds?|eded)|successful(?:ly)?|ok(?:ay)?|done|completed?|finished|(?:fully[_ -])?(?:re)?solved|fixed|correct|right|accepted|achieved|satisfied|fulfilled|won|win)$/i

const TELLING: Array<{ key: RegExp; read: (value: unknown) => Outcome['verdict'] | undefined }> = [
  {
    key: /^(?:is_?)?(?:success(?:ful)?|succeeded|pass(?:ed)?|ok|(?:re)?solved|correct|fixed|accepted)$/i,
    read: (value) => (value === true ? 'passed' : value === false ? 'failed' : undefined),
  },
  {
    key: /^(?:is_?)?(?:failed|crashed|errored|unresolved|unsolved|incorrect)$|^is_?error$/i,
    read: (value) => (value === true ? 'failed' : value === false ? 'passed' : undefined),
  },
  { key: WORD_KEY, read: readWord },
  {
    key: /^reward$/i,
    read: (value) =>
      typeof value !== 'number' ? undefined : value <= 0 ? 'failed' : value >= 1 ? 'passed' : undefined,
  },
  {
    key: /^exit_?code$/i,
    read: (value) => (typeof value !== 'number' ? undefined : value === 0 ? 'passed' : 'failed'),
  },
  { key: /^error$/i, read: (value) => (value ? 'failed' : undefined) },
]

function readWord(value: unknown): Outcome['verdict'] | undefined {
  if (typeof value !== 'string') return undefined
  return FAILED.test(value) ? 'failed' : PASSED.test(value) ? 'passed' : undefined
}

function ownVerdict(value: unknown, words: OutcomeWords): Outcome['verdict'] | undefined {
  if (typeof value !== 'string') return undefined
  const word = value.toLowerCase()
  return Object.entries(words).find(([own]) => own.toLowerCase() === word)?.[1]
}

/** Searches for a member with the outcome, at the top level and one below: first for one of the project's own words. */
export function outcomeOf(
  configs: Record<string, unknown>,
  words: OutcomeWords = {},
  path: string[] = [],
): Outcome | undefined {
  const own = { key: WORD_KEY, read: (value: unknown) => ownVerdict(value, words) }
  for (const { key, read } of [own, ...TELLING]) {
    for (const [name, value] of Object.entries(configs)) {
      const verdict = key.test(name) ? read(value) : undefined
      if (verdict) return { verdict, path: [...path, name], value }
    }
  }
  if (path.length > 0) return undefined
  for (const [name, value] of Object.entries(configs)) {
    const found = isObject(value) ? outcomeOf(value, words, [name]) : undefined
    if (found) return found
  }
  return undefined
}

/** An outcome as it is shown: in its project's own word, such as `submitted`, where configs have one. */
export interface ShownOutcome extends Omit<Outcome, 'verdict'> {
  word: string
  /** `other`: nobody knows whether this word is good or bad. */
  verdict: Outcome['verdict'] | 'other'
}

const WORD = /^\p{L}[\p{L}\p{N} _-]{0,23}$/u
/** The outcome of a run as it is shown: the verdict, or else a word that configs have in its place. */
export function shownOutcome(
  configs: Record<string, unknown>,
  words?: OutcomeWords,
): ShownOutcome | undefined {
  const outcome = outcomeOf(configs, words)
  if (outcome) return { ...outcome, word: wordIn(outcome.value) ?? outcome.verdict }
  for (const [key, value] of Object.entries(configs)) {
    const word = WORD_KEY.test(key) ? wordIn(value) : undefined
    if (word !== undefined) return { verdict: 'other', word, path: [key], value }
  }
  return undefined
}

function wordIn(value: unknown): string | undefined {
  return typeof value === 'string' && WORD.test(value) ? value : undefined
}

/** The outcome that a value, as JSON text, stands for. */
export function verdictOf(
  path: string[],
  value: string,
  words?: OutcomeWords,
): 'failed' | 'passed' | undefined {
  const parsed = value === '' ? undefined : parsedValue(value)
  return parsed === undefined ? undefined : outcomeOf({ [path.at(-1)!]: parsed }, words)?.verdict
}

function parsedValue(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
