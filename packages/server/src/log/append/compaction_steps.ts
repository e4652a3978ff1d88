import { COMPACTION_TYPE } from '@annals/messages/context'

/**
 * Compactions in the functions that append. A compaction is the event that says what stands for the entries in its range in
 * a context. It is valid until an entry in its range is retracted, and is then retracted by the same event, so that what
 * leaves out retracted entries leaves out what was said about them.
 */

/** The valid compactions of a session, as the index has them. */
export function validCompactions(project: string, session: string): string {
  return `e.project_id = ${project} AND e.session_id = ${session} AND e.type = '${COMPACTION_TYPE}' AND e.retracted_by IS NULL`
}

/**
 * A seq in the data of a compaction `e`. An event of that type may also be a caller's from before there were compactions,
 * with anything in it: that covers nothing.
 */
export function seqIn(field: 'from_seq' | 'to_seq'): string {
  return `CASE WHEN jsonb_typeof(e.data -> '${field}') = 'number'
              THEN greatest(least((e.data -> '${field}')::numeric, ${Number.MAX_SAFE_INTEGER}), 0)::bigint END`
}

/** Where the locked head is that of a session with this condition: whether it holds. */
export const CHECK_UNREVISED = `
    IF seq_of_condition < 0 THEN
      IF EXISTS (
        SELECT FROM session_heads h
        WHERE h.project_id = p_project AND h.session_id = p_sessions[place_of_head] AND h.retraction_seq > -1 - seq_of_condition
      ) OR EXISTS (
        SELECT FROM entries e
        WHERE ${validCompactions('p_project', 'p_sessions[place_of_head]')} AND e.seq > -1 - seq_of_condition
      ) THEN
        last_seqs[place_of_head] := -1 - seq_of_head;
      ELSE
        seq_of_condition := seq_of_head;
      END IF;
    END IF;`

export const COMPACTION_VARIABLES = `
  compaction record;
  fallen bigint[];
  fallen_with int[];`

/**
 * Steps of RETRACT, behind the marking of its targets: retracts the compactions that cover one of them. Of retractions that
 * are carried out together, the one that takes the newest entry in the range does so. `fallen`: their seqs; `fallen_with`:
 * the place of the retraction of each.
 */
export const RETRACT_COMPACTIONS = `
        fallen := '{}';
        fallen_with := '{}';
        IF target_count > 0 THEN
          FOR compaction IN
            SELECT e.seq, e.ctid AS place, c.nth FROM entries e
            CROSS JOIN LATERAL (SELECT ${seqIn('from_seq')} AS from_seq, ${seqIn('to_seq')} AS to_seq OFFSET 0) r
            CROSS JOIN LATERAL (SELECT width_bucket(r.to_seq, targets) AS nth OFFSET 0) c
            WHERE ${validCompactions('p_project', 'p_sessions[part.place]')} AND e.seq < own_seq AND e.seq > targets[1]
              AND c.nth > 0 AND targets[c.nth] >= r.from_seq
            ORDER BY e.seq
          LOOP
            fallen := fallen || compaction.seq;
            fallen_with := fallen_with || width_bucket(target_count - compaction.nth, one.starts);
            UPDATE entries AS e SET retracted_by = own_seq - 1 + fallen_with[cardinality(fallen)]
            WHERE e.project_id = p_project AND e.session_id = p_sessions[part.place] AND e.ctid = compaction.place;
          END LOOP;
        END IF;`

/** The data of a retraction that has retracted `seqs` and is the n-th of those that are carried out together. */
export function retractionData(seqs: string, nth: string): string {
  return `CASE WHEN ${nth} = ANY (fallen_with) THEN (
            SELECT jsonb_build_object('seqs', (SELECT array_agg(x.seq ORDER BY x.seq) FROM unnest(${seqs} || array_agg(f.seq)) AS x (seq)),
              'compactions', array_agg(f.seq ORDER BY f.seq))
            FROM unnest(fallen, fallen_with) AS f (seq, nth) WHERE f.nth = ${nth}
          ) ELSE jsonb_build_object('seqs', ${seqs}) END`
}
