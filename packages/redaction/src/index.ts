export {
  DETECTOR_NAMES,
  DETECTORS,
  type Detector,
  detectorsOf,
  type Finding,
  GROUPS,
  type Group,
} from './detectors.js'
export { find, type Wanted, wantedOf } from './find.js'
export type { KindOfMarks, Mark } from './marks.js'
export {
  type Refused,
  type RewriteOptions,
  type Rewritten,
  rewriteFragment,
  rewriteJson,
} from './rewrite.js'
export {
  ACTIONS,
  type Action,
  DEFAULT_RULES,
  faultOf,
  KINDS_OF_ENTRIES,
  PATTERN_LENGTH_MAX,
  type ReadyRule,
  RULES_MAX,
  type Rule,
  type RuleFault,
  readyRules,
  type What,
  type Where,
} from './rules.js'
