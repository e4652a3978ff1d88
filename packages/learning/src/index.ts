export { type Decision, type Delta, deltasOf, type KnownStatement, nearestStatements } from './curate.js'
export { errorExcerpt, errorTemplate } from './error_template.js'
export { type ErrorFinding, findErrors, type Quote, type RuleFindings } from './find_errors.js'
export { type Candidate, type PassedStatement, passGates, type Refusal, wordsHeard } from './gates.js'
export {
  ANSWER_SCHEMAS,
  answerOf,
  expectedTokens,
  failureOfStatus,
  type ModelAddress,
  type ModelAnswer,
  ModelFailure,
  type ModelTokens,
  parseAnswer,
  type Step,
  type StepAnswer,
  sentTokens,
} from './model.js'
export { hasOutcomeEvidence, type TaskRun } from './outcome_evidence.js'
export { compactPrompt, curatePrompt, type Prompt, reflectPrompt, summaryText } from './prompts.js'
export {
  KINDS,
  type RenderedStatement,
  renderContext,
  renderSkill,
  type SpaceStatement,
  type StatementKind,
  spaceContext,
} from './render.js'
export {
  hasSucceeded,
  type Outcome,
  outcomeOf,
  type ShownEntry,
  type ShownRun,
  type ShownStretch,
  showRun,
  showStretch,
  storedOutcome,
} from './shown_run.js'
export { nextState, skillOf, statementOf, type TouchedStatement } from './skill_entry.js'
export {
  contentType,
  isSkillMd,
  readSkillHead,
  SKILL_MD,
  SKILL_NAME,
  SKILL_NAME_LENGTH_MAX,
  type SkillHead,
  shownPath,
  skillRoot,
  type Wrong,
  wrongSkillPaths,
} from './skill_file.js'
export { oneLine, skillName } from './text.js'
