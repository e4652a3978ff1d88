import { onShard } from '../../postgres/citus/shards_here.js'
import { CONFIGS_VARIABLES, mergeConfigs, readConfigs, STORE_CONFIGS } from './configs_queries.js'

/**
 * Appends to several sessions, all or nothing, within a flush. `p_atomic` are the indexes of all sessions of such
 * requests. If one of these sessions cannot store its part (it does not exist, its If-Match does not hold, or its
 * merged configs would be too large), none of them stores anything: a request that shared the flush with a refused one
 * is stored by the next statement.
 *
 * `p_patches`: a JSON array of `place` (index of the session, each once) and `patch`, which is merged into its configs.
 * `p_are_atomic_keys`, one element per key: the key belongs to such a request, whose seqs are kept as its answer, since
 * they are of several sessions. `p_key_entry_places`: of each element of `p_key_behind`, the index of its session.
 */
export const ATOMIC_PARAMETERS =
  'p_atomic int[], p_patches jsonb, p_configs_bytes_max int, p_are_atomic_keys boolean[], p_key_entry_places int[]'

export const ATOMIC_VARIABLES = `
  refused text;
  patch jsonb;${CONFIGS_VARIABLES}`

function forEachPatch(steps: string): string {
  return `
  FOR place_of_head, patch IN SELECT p.place, p.patch FROM jsonb_to_recordset(p_patches) AS p (place int, patch jsonb) LOOP
    CONTINUE WHEN open_seqs[place_of_head] IS NULL;${readConfigs('p_sessions[place_of_head]')}${mergeConfigs('patch')}${steps}
  END LOOP;`
}

/** Steps behind the locks of the heads and before the first write. */
export const CHECK_ATOMIC = `${forEachPatch(`
    IF octet_length(after::text) > p_configs_bytes_max THEN
      open_seqs[place_of_head] := NULL;
      refused := concat_ws(',', refused, place_of_head);
    END IF;`)}
  IF (SELECT bool_or(open_seqs[a.place] IS NULL) FROM unnest(p_atomic) AS a (place)) THEN
    FOREACH place_of_head IN ARRAY p_atomic LOOP
      open_seqs[place_of_head] := NULL;
      moved_sessions := array_remove(moved_sessions, p_sessions[place_of_head]);
    END LOOP;
    refused := concat_ws(',', 0, refused);
  END IF;`

/** Steps behind the inserts. */
export const PATCH_CONFIGS = forEachPatch(STORE_CONFIGS)

/**
 * The last line of the answer: empty, or, if nothing was stored in the sessions of `p_atomic`, 0 and the indexes of
 * those whose merged configs would be too large, separated by commas.
 */
export const ATOMIC_ANSWER = `, E'\\n', refused`

/** Steps that store the keys of a flush with atomic requests. */
export const REMEMBER_ATOMIC = `
  IF p_keys IS NOT NULL THEN${onShard(
    'idempotency_keys',
    `
    INSERT INTO idempotency_keys AS k (project_id, key, request_hash, owner_id, created_at, seqs, answer)
    SELECT p_project, k.key, k.request_hash, p_sessions[k.place], now(),
      CASE WHEN NOT k.is_atomic THEN s.seqs END, CASE WHEN k.is_atomic THEN array_to_string(s.seqs, ',') END
    FROM unnest(p_keys, p_key_hashes, p_key_places, p_key_firsts, p_key_lasts, p_are_atomic_keys)
      AS k(key, request_hash, place, first, last, is_atomic)
    CROSS JOIN LATERAL (
      SELECT array_agg(CASE WHEN x.behind > 0 THEN open_seqs[x.place] + x.behind ELSE x.known_seq END ORDER BY x.ord) AS seqs
      FROM unnest(p_key_behind[k.first:k.last], p_key_known_seqs[k.first:k.last], p_key_entry_places[k.first:k.last])
        WITH ORDINALITY AS x(behind, known_seq, place, ord)
    ) s
    WHERE open_seqs[k.place] IS NOT NULL`,
    ['open_seqs'],
  )}
  END IF;`
