export { type Decision, type Delta, deltasOf, type KnownStatement, nearestStatements } from './curate.js'
export { errorTemplate } from './error_template.js'
export { type ErrorFinding, findErrors, type Quote, type RuleFindings } from './find_errors.js'
export { type Candidate, type PassedStatement, passGates, type Refusal, wordsHeard } from './gates.js'
export { hasOutcomeEvidence, type TaskRun } from './outcome_evidence.js'
export { curatePrompt, type Prompt, reflectPrompt } from './prompts.js'
export {
  KINDS,
  type RenderedStatement,
  renderContext,
  renderSkill,
  type SpaceStatement,
  type StatementKind,
  spaceContext,
} from './render.js'
export { hasSucceeded, type Outcome, type ShownRun, showRun } from './shown_run.js'
export {
  readSkillHead,
  SKILL_NAME,
  SKILL_NAME_LENGTH_MAX,
  type SkillHead,
  type Wrong,
  wrongSkillPath,
} from './skill_file.js'
export { oneLine, skillName } from './text.js'
