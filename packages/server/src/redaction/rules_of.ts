import { DEFAULT_RULES, type ReadyRule, type Rule, readyRules } from '@annals/redaction'
import type { FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'

/** Rules as another thread takes them, with the secret that hashes what they find. */
export interface RulesText {
  rules: string
  secret: string
  /** There are patterns, which may take long. */
  costly: boolean
}

interface ProjectRules {
  /** Undefined: writes stay as they are. */
  write: RulesText | undefined
  /** For masked readers: the project's own rules, and then all detectors, so that nothing is left out by mistake. */
  read: RulesText
}

const KEPT_MAX = 1_000
const ALL: readonly Rule[] = [...DEFAULT_RULES.map((rule) => ({ ...rule, when: 'read' as const }))]
const known = new LRUCache<string, ProjectRules>({ max: KEPT_MAX })
const ready = new LRUCache<string, readonly ReadyRule[]>({ max: KEPT_MAX })

/** The rules for a request's project. @param stored as the key's grant has it; undefined: there are none */
export function rulesOf({ grant, project_id }: Pick<FastifyRequest, 'grant' | 'project_id'>): ProjectRules {
  const stored = grant?.redaction ?? '{}'
  const key = `${project_id} ${stored}`
  let found = known.get(key)
  if (!found) {
    const { rules, secret = project_id } = JSON.parse(stored) as { rules?: Rule[] | null; secret?: string }
    const written = rules?.filter(({ when }) => when === 'write') ?? []
    const read = [...(rules?.filter(({ when }) => when === 'read') ?? []), ...ALL]
    found = {
      write: written.length > 0 ? rulesText(written, secret) : undefined,
      read: rulesText(read, secret),
    }
    known.set(key, found)
  }
  return found
}

function rulesText(rules: readonly Rule[], secret: string): RulesText {
  return { rules: JSON.stringify(rules), secret, costly: rules.some(({ what }) => 'pattern' in what) }
}

export function rulesFrom({ rules }: RulesText): readonly ReadyRule[] {
  let found = ready.get(rules)
  if (!found) {
    found = readyRules(JSON.parse(rules) as Rule[])
    ready.set(rules, found)
  }
  return found
}
