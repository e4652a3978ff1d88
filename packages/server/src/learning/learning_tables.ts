import type { Table } from '../lifecycle/table.js'
import { LOST, missing, notErased, ODD, ORPHAN } from '../lifecycle/verify/check.js'
import { ERASE_CALLS } from './model/call_queries.js'
import { TURNS_WAIT } from './model/lane_queries.js'
import { learnFromImported } from './sessions/space_sessions.js'
import { eraseCites } from './statements/statements.js'

const OF_SPACE = { erased_with: 'learning_space', counted: false, exported: true } as const
const OF_SPACE_AND_SESSION = { ...OF_SPACE, also_erased_with: { kind: 'session' } } as const

/** A row that names a session which is gone. */
function lostSession(kind: string) {
  return {
    [`${kind}_without_session`]: {
      where: `t.session_id IS NOT NULL AND ${missing('session_heads', 't.session_id', 'session_id')} AND ${notErased('t.session_id')}`,
      place: `'learning space ' || t.learning_space_id`,
      detail: "'the session does not exist: ' || t.session_id",
      means: `a ${kind.replaceAll('_', ' ')} of a session that does not exist`,
      todo: ORPHAN,
    },
  }
}

const COUNTED_SUPPORT = `(SELECT count(DISTINCT c.session_id) FROM statement_cites c
      WHERE c.project_id = $1 AND c.statement_id = t.id AND c.polarity = '+')`

/** What learning spaces learn, and from where; each behind what it refers to. */
export const LEARNING_TABLES: readonly Table[] = [
  {
    ...OF_SPACE,
    name: 'space_policies',
    kind: 'space_policy',
    key: ['learning_space_id'],
    order: ['learning_space_id'],
    columns: { learning_space_id: 'uuid', mode: 'text', policy: 'object', updated_at: 'time' },
    checks: {},
  },
  {
    ...OF_SPACE_AND_SESSION,
    name: 'space_sessions',
    waits: TURNS_WAIT,
    restored: learnFromImported,
    kind: 'space_session',
    key: ['session_id', 'learning_space_id'],
    columns: {
      session_id: 'uuid',
      learning_space_id: 'uuid',
      id: 'uuid',
      status: 'text',
      error: 'text?',
      learnt_seq: 'bigint',
      reflected_seq: 'bigint',
      tools: 'object',
      outcome: 'object?',
      created_at: 'time',
      updated_at: 'time',
    },
    checks: lostSession('space_session'),
  },
  {
    name: 'skills',
    kind: 'skill',
    key: ['id'],
    columns: {
      id: 'uuid',
      user_id: 'user?',
      learning_space_id: 'uuid?',
      name: 'text',
      description: 'text',
      source: 'text',
      meta: 'object',
      created_at: 'time',
      updated_at: 'time',
    },
    erased_with: 'user',
    also_erased_with: { kind: 'learning_space' },
    order: ['created_at', 'id'],
    counted: true,
    exported: true,
    unchanging: ['created_at', 'user'],
    checks: {},
  },
  {
    name: 'skill_files',
    kind: 'skill_file',
    key: ['skill_id', 'path'],
    columns: {
      skill_id: 'uuid',
      path: 'text',
      mime: 'text',
      is_text: 'boolean',
      bytes: 'bigint',
      sha256: 'text',
    },
    erased_with: 'skill',
    counted: false,
    exported: true,
    checks: {
      skill_file_without_blob: {
        where: `${missing('blobs', 't.sha256', 'sha256')} OR NOT EXISTS (
          SELECT FROM blob_references r WHERE r.project_id = $1 AND r.owner_id = t.skill_id AND r.seq = 0 AND r.sha256 = t.sha256)`,
        place: "'skill ' || t.skill_id",
        detail: "'nothing keeps the bytes of ' || t.path",
        means: 'a file of a skill has no bytes, or may lose them',
        todo: LOST,
      },
    },
  },
  {
    ...OF_SPACE,
    name: 'space_skills',
    kind: 'space_skill',
    also_erased_with: { kind: 'skill' },
    key: ['learning_space_id', 'skill_id'],
    columns: { learning_space_id: 'uuid', skill_id: 'uuid', id: 'uuid', created_at: 'time' },
    checks: {},
  },
  {
    ...OF_SPACE,
    name: 'statements',
    kind: 'statement',
    counted: true,
    key: ['id'],
    columns: {
      id: 'uuid',
      learning_space_id: 'uuid',
      skill_id: 'uuid',
      rule_key: 'text?',
      statement_kind: 'text',
      state: 'text',
      author: 'text',
      pinned: 'boolean',
      text: 'text',
      marker: 'text?',
      origins: 'object?',
      supports: 'integer',
      contradicts: 'integer',
      created_at: 'time',
      updated_at: 'time',
    },
    checks: {
      statement_without_skill: {
        where: missing('skills', 't.skill_id'),
        place: "'statement ' || t.id",
        detail: "'no skill has the id ' || t.skill_id",
        means: 'a statement of a skill that does not exist',
        todo: ODD,
      },
      statement_support: {
        where: `t.supports <> ${COUNTED_SUPPORT}`,
        place: "'statement ' || t.id",
        detail: `'it counts ' || t.supports || ' sessions, and its citations name ' || ${COUNTED_SUPPORT}`,
        means: 'a statement counts other support than its citations show',
        todo: ODD,
      },
      statement_unsupported: {
        where: "t.author <> 'person' AND t.supports = 0 AND (t.state <> 'revoked' OR t.text <> '')",
        place: "'statement ' || t.id",
        detail: "'no session supports it, and it has words'",
        means: 'a statement outlived what it was learnt from',
        todo: ODD,
      },
    },
  },
  {
    ...OF_SPACE,
    name: 'statement_cites',
    kind: 'statement_cite',
    counted: true,
    also_erased_with: { kind: 'session', counts: ['revoked_statements'], eraseSomeOf: eraseCites },
    key: ['statement_id', 'session_id', 'seq'],
    order: ['statement_id', 'session_id', 'seq'],
    columns: {
      statement_id: 'uuid',
      session_id: 'uuid',
      seq: 'ordinal',
      learning_space_id: 'uuid',
      polarity: 'text',
      quote: 'text',
      is_origin: 'boolean',
    },
    checks: {
      ...lostSession('statement_cite'),
      cite_without_statement: {
        where: missing('statements', 't.statement_id'),
        place: "'statement ' || t.statement_id",
        detail: "'the statement does not exist'",
        means: 'a citation of a statement that does not exist',
        todo: ORPHAN,
      },
    },
  },
  {
    ...OF_SPACE_AND_SESSION,
    name: 'statement_feedback',
    kind: 'feedback',
    key: ['statement_id', 'session_id'],
    order: ['statement_id', 'session_id'],
    columns: {
      statement_id: 'uuid',
      session_id: 'uuid',
      learning_space_id: 'uuid',
      helped: 'boolean',
      created_at: 'time',
    },
    checks: lostSession('feedback'),
  },
  {
    ...OF_SPACE,
    name: 'learning_calls',
    kind: 'learning_call',
    also_erased_with: { kind: 'session', eraseSomeOf: ERASE_CALLS },
    key: ['id'],
    order: ['created_at', 'id'],
    columns: {
      id: 'uuid',
      learning_space_id: 'uuid',
      input_hash: 'text',
      step: 'text',
      model: 'text',
      session_id: 'uuid?',
      other_session_id: 'uuid?',
      status: 'text',
      error: 'text?',
      answer: 'object?',
      attempts: 'integer',
      tokens_in: 'bigint',
      tokens_out: 'bigint',
      created_at: 'time',
      sent_at: 'time',
    },
    checks: lostSession('learning_call'),
  },
  {
    ...OF_SPACE,
    name: 'skill_versions',
    kind: 'skill_version',
    key: ['id'],
    order: ['created_at', 'id'],
    columns: {
      id: 'uuid',
      learning_space_id: 'uuid',
      skill_id: 'uuid',
      author: 'text',
      reason: 'text',
      statements: 'object',
      text: 'text?',
      created_at: 'time',
    },
    checks: {},
  },
]
