import { type Config, describeSettings } from '../configuration/config.js'
import { exposureWarnings } from '../configuration/exposure.js'
import { NODE_MIN } from '../version.js'
import { type Diagnosis, well, wrong } from './diagnosis.js'

/** Variables with our prefix that are read by other parts than the service. */
const OTHER_VARIABLES = ['ANNALS_URL', 'ANNALS_TOKEN', 'ANNALS_PROFILE']

export function checkNode(version: string): Diagnosis {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number)
  const [majorMin = 0, minorMin = 0] = NODE_MIN.split('.').map(Number)
  const fits = major > majorMin || (major === majorMin && minor >= minorMin)
  return fits
    ? well('node', `Node ${version}`)
    : wrong('node', 'failure', `Node ${version}`, `Install Node ${NODE_MIN} or newer.`)
}

export function checkVariables(environment: Record<string, string | undefined>): Diagnosis {
  const known = [...describeSettings().map(({ variable }) => variable), ...OTHER_VARIABLES]
  const unknown = Object.keys(environment).filter((name) => /^ANNALS_/i.test(name) && !known.includes(name))
  if (unknown.length === 0) return well('variables', 'no ANNALS_ variable is misspelt')
  const hints = unknown.map((name) => {
    const nearest = nearestTo(name, known)
    return nearest === undefined
      ? `No part of Annals reads ${name}: remove it.`
      : `${name}: did you mean ${nearest}?`
  })
  const found = `${unknown.join(', ')}: not a setting`
  return wrong('variables', 'warning', found, `${hints.join(' ')} The README lists all settings.`)
}

export function checkExposure(config: Config): Diagnosis[] {
  const warnings = exposureWarnings(config)
  if (warnings.length === 0) return [well('exposure', `listens on ${config.host}`)]
  return warnings.map((warning) => {
    const [found = warning, ...todo] = warning.split('. ')
    return wrong('exposure', 'warning', found, todo.join('. '))
  })
}

const SIMILAR = 0.6

/** The name that shares most pairs of adjacent letters, if it shares many. */
function nearestTo(name: string, candidates: string[]): string | undefined {
  const pairs = pairsOf(name)
  const rated = candidates.map((candidate) => {
    const others = pairsOf(candidate)
    const shared = [...pairs].filter((pair) => others.has(pair)).length
    return { candidate, similarity: (2 * shared) / (pairs.size + others.size) }
  })
  rated.sort((a, b) => b.similarity - a.similarity)
  return rated[0] && rated[0].similarity >= SIMILAR ? rated[0].candidate : undefined
}

function pairsOf(name: string): Set<string> {
  const letters = name.toUpperCase().replace(/^ANNALS_/, '')
  return new Set(Array.from({ length: letters.length - 1 }, (_, index) => letters.slice(index, index + 2)))
}
