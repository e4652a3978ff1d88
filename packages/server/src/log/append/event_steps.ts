import { onShard } from '../../postgres/citus/shards_here.js'

/** The index of a head's session in `p_sessions`, which is sorted: a binary search. */
export const PLACE = 'width_bucket(h.session_id, p_sessions)'

/**
 * For a flush of only events: the heads need not be known before they are moved, so this moves them at once and numbers
 * the entries by the result, which costs an eighth less.
 */
export const MOVE_HEADS = `${onShard(
  'session_heads',
  `
    UPDATE session_heads AS h
    SET last_seq = h.last_seq + p_new_entries[${PLACE}], updated_at = greatest(now(), h.updated_at),
      bytes = h.bytes + p_new_bytes[${PLACE}], counted = h.counted + p_new_entries[${PLACE}]
    WHERE h.project_id = p_project AND h.session_id = ANY (p_sessions)
    RETURNING ${PLACE}, h.last_seq, h.updated_at`,
  [],
  {
    gives: ['int', 'bigint', 'timestamptz'],
    before: `
  FOR place_of_head, seq_of_head, time_of_head IN`,
    after: `
  LOOP
    last_seqs[place_of_head] := seq_of_head - p_new_entries[place_of_head];
    times[place_of_head] := time_of_head;
  END LOOP;`,
  },
)}
  open_seqs := last_seqs;`

export const INSERT_EVENTS = onShard(
  'entries',
  `
  INSERT INTO entries AS e (project_id, session_id, seq, created_at, updated_at, id, bytes, tokens, kind, type, data,
    occurred_at)
  SELECT p_project, p_sessions[i.place], open_seqs[i.place] + i.behind, times[i.place], times[i.place], i.id, i.bytes, 0,
    'event', i.type, i.data, i.occurred_at
  FROM ROWS FROM (unnest(p_places, p_behind, p_ids, p_bytes, p_types, p_occurred), jsonb_array_elements(p_data))
    AS i (place, behind, id, bytes, type, occurred_at, data)
  WHERE open_seqs[i.place] IS NOT NULL`,
  ['open_seqs', 'times'],
)
