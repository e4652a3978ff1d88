import { timestampText } from '../../lists/resource_json.js'
import { prepared } from '../../postgres/statement.js'
import { storedFunction } from '../../postgres/stored_function.js'
import { findOrCreateSkill, STATEMENTS_MAX } from '../statements/statement_queries.js'

/** SQL: what is at a path such as /a/b of a session's configs, if the policy names one. */
const atPath = (name: string) =>
  `CASE WHEN p.policy ? '${name}' THEN s.configs #> string_to_array(substr(p.policy ->> '${name}', 2), '/') END`

/**
 * The spaces that learn from sessions, which nobody deletes until the commit. Parameters: $1 project, $2 sessions, $3
 * whether the service has a model. Rows: learning_space_id, session_id, learnt_seq, last_seq, outcome (from the session's
 * configs, as JSON, or null), has_model.
 */
export const LOCK_LEARNING_SPACES = prepared(
  'lock_learning_spaces',
  `SELECT x.learning_space_id, x.session_id, x.learnt_seq, h.last_seq,
  nullif(jsonb_strip_nulls(jsonb_build_object('reward', ${atPath('reward')}, 'group', ${atPath('group')})), '{}')::text AS outcome,
  $3::boolean OR EXISTS (SELECT FROM projects j WHERE j.id = $1 AND j.model IS NOT NULL) AS has_model
FROM space_sessions x
JOIN learning_spaces l ON l.project_id = $1 AND l.id = x.learning_space_id
JOIN sessions s ON s.project_id = $1 AND s.id = x.session_id
JOIN session_heads h ON h.project_id = $1 AND h.session_id = x.session_id
LEFT JOIN space_policies p ON p.project_id = $1 AND p.learning_space_id = x.learning_space_id
WHERE x.project_id = $1 AND x.session_id = ANY ($2::uuid[]) AND coalesce(p.mode, 'suggest') <> 'off'
ORDER BY x.learning_space_id, x.session_id FOR KEY SHARE OF l`,
)

/** Bytes of an entry that rules read at most; what is longer is left out. */
const ENTRY_BYTES_MAX = 256 * 1024
/** Entries before the new ones that are read again, so that results find their calls; only short ones. */
const KNOWN_ENTRIES = 50
const KNOWN_ENTRY_BYTES_MAX = 16 * 1024

/**
 * A piece of a log, in order, with some of what was read before it. Parameters: $1 project, $2 session, $3 seq up to
 * which it was read, $4 entries, $5 bytes after which the piece ends. Rows: as entries; data is null where rules leave it out.
 */
export const READ_ENTRIES_FOR_RULES = prepared(
  'read_entries_for_rules',
  `SELECT o.seq, o.id, o.kind, o.type, o.role, o.format, ${timestampText('coalesce(o.occurred_at, o.created_at)')} AS created_at,
  CASE WHEN o.retracted_by IS NULL AND o.bytes <= ${ENTRY_BYTES_MAX} THEN o.data::text END AS data
FROM (
  SELECT i.*, coalesce(sum(i.bytes) FILTER (WHERE i.seq > $3) OVER (ORDER BY i.seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before
  FROM entries i WHERE i.project_id = $1 AND i.session_id = $2 AND i.seq > $3 - ${KNOWN_ENTRIES} AND i.seq <= $3 + $4::bigint
) o
WHERE o.bytes_before < $5 AND (o.seq > $3 OR o.bytes <= ${KNOWN_ENTRY_BYTES_MAX}) ORDER BY o.seq`,
)

/**
 * Stores what rules found in a piece of a session, in all spaces that learn from it. Each finding is one statement of
 * the space, whatever the session, with the session's citations; a known one gets the repair if it had none.
 * `p_findings`: an array of { id, skill_id, key, skill, description, text, is_repaired, cites }. `p_outcome`: null where
 * there is none. Statements of rules are the words of tools, so no mode makes them active without a person.
 */
export const LEARN_BY_RULES = storedFunction(
  'learn_by_rules',
  `p_project uuid, p_space uuid, p_session uuid, p_seq bigint, p_is_whole boolean, p_findings jsonb,
  p_tools jsonb, p_outcome jsonb, p_has_model boolean`,
  `DECLARE
  finding record;
  known record;
  skill uuid;
  digest text;
  is_new boolean;
  repaired_by jsonb;
  tools_so_far jsonb;
  soon timestamptz := now();
  quiet timestamptz := now() + interval '10 minutes';
BEGIN
  FOR finding IN
    SELECT f.*, encode(sha256(convert_to(f.key, 'UTF8')), 'hex') AS digest
    FROM jsonb_to_recordset(p_findings) AS f (id uuid, skill_id uuid, key text, skill text, description text, text text, is_repaired boolean, cites jsonb)
    ORDER BY f.key
  LOOP
    -- The error is the same in all sessions; how it was mended is what one of them showed.
    repaired_by := CASE WHEN finding.is_repaired THEN jsonb_build_object(p_session::text, true) END;
    SELECT s.id, s.state, s.pinned, s.text INTO known FROM statements s
    WHERE s.project_id = p_project AND s.learning_space_id = p_space AND s.rule_key = finding.digest FOR UPDATE;
    IF known.id IS NULL OR known.state = 'revoked' THEN
      CONTINUE WHEN known.id IS NULL AND (SELECT count(*) FROM statements s WHERE s.project_id = p_project AND s.learning_space_id = p_space) >= ${STATEMENTS_MAX};${findOrCreateSkill('finding.skill', 'finding.description', 'finding.skill_id')}
      INSERT INTO statements AS s (project_id, learning_space_id, id, skill_id, rule_key, statement_kind, state, author, pinned, text, supports, contradicts, origins, created_at, updated_at)
      VALUES (p_project, p_space, finding.id, skill, finding.digest, 'fact', 'proposed', 'rule', false, finding.text, 0, 0, repaired_by, now(), now())
      ON CONFLICT (project_id, learning_space_id, rule_key) DO UPDATE SET skill_id = excluded.skill_id WHERE s.state = 'revoked';
      SELECT s.id, s.state, s.pinned, s.text INTO known FROM statements s
      WHERE s.project_id = p_project AND s.learning_space_id = p_space AND s.rule_key = finding.digest FOR UPDATE;
    END IF;
    PERFORM FROM statement_cites c WHERE c.project_id = p_project AND c.statement_id = known.id AND c.session_id = p_session AND c.polarity = '+' LIMIT 1;
    is_new := NOT FOUND;
    IF is_new OR finding.is_repaired AND length(known.text) < length(finding.text) THEN
      INSERT INTO statement_cites AS c (project_id, learning_space_id, statement_id, session_id, seq, polarity, quote, is_origin)
      SELECT p_project, p_space, known.id, p_session, c.seq, '+', c.quote, false
      FROM jsonb_to_recordset(finding.cites) AS c (seq bigint, quote text)
      ON CONFLICT (project_id, statement_id, session_id, seq) DO NOTHING;
      UPDATE statements AS s SET supports = s.supports + is_new::int,
        state = CASE WHEN s.state = 'revoked' THEN 'proposed' ELSE s.state END,
        text = CASE WHEN NOT s.pinned AND (s.state = 'revoked' OR finding.is_repaired AND length(s.text) < length(finding.text))
          THEN finding.text ELSE s.text END,
        origins = CASE WHEN NOT s.pinned AND (s.state = 'revoked' OR finding.is_repaired AND length(s.text) < length(finding.text))
          THEN repaired_by ELSE s.origins END,
        updated_at = greatest(now(), s.updated_at)
      WHERE s.project_id = p_project AND s.id = known.id;
    END IF;
  END LOOP;
  SELECT jsonb_object_agg(t.name, t.calls) INTO tools_so_far FROM (
    SELECT e.key AS name, sum(e.value::bigint) AS calls
    FROM (SELECT * FROM jsonb_each_text((SELECT x.tools FROM space_sessions x
        WHERE x.project_id = p_project AND x.session_id = p_session AND x.learning_space_id = p_space AND x.learnt_seq < p_seq))
      UNION ALL SELECT * FROM jsonb_each_text(p_tools)) e
    WHERE e.value ~ '^[0-9]{1,15}$' GROUP BY e.key ORDER BY e.key LIMIT 100) t;
  UPDATE space_sessions AS x SET learnt_seq = greatest(x.learnt_seq, p_seq),
    tools = CASE WHEN x.learnt_seq < p_seq THEN coalesce(tools_so_far, x.tools) ELSE x.tools END,
    outcome = CASE WHEN p_outcome IS NULL THEN x.outcome ELSE coalesce(x.outcome, '{}') || p_outcome END,
    status = CASE WHEN NOT p_is_whole THEN x.status WHEN NOT p_has_model THEN 'completed'
      WHEN x.status = 'failed' OR x.due_at IS NOT NULL THEN x.status
      WHEN p_seq > x.reflected_seq THEN 'queued' ELSE 'completed' END,
    due_at = CASE WHEN p_is_whole AND p_has_model AND p_seq > x.reflected_seq AND (x.status = 'queued' OR x.due_at IS NULL AND x.status <> 'failed')
      THEN CASE WHEN x.asked OR coalesce(p_outcome, x.outcome) ? 'reward'
          AND (x.reflected_seq = 0 OR coalesce(x.outcome, '{}') || p_outcome IS DISTINCT FROM x.outcome)
        THEN soon ELSE quiet END ELSE x.due_at END,
    updated_at = greatest(now(), x.updated_at)
  WHERE x.project_id = p_project AND x.session_id = p_session AND x.learning_space_id = p_space;
  RETURN NULL;
END`,
)
