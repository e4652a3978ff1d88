import { PIECE_BYTES_MAX } from '@annals/kits/limits.js'
import { armsText, FILTER_TERMS_MAX } from '@annals/kits/lists/listed.js'
import { timestampText } from '@annals/kits/lists/resource_json.js'
import { prepared } from '@annals/kits/postgres/statement.js'
import { byId } from '../log/read/read_queries.js'
import { dueAtOnceText, isPendingText, runFunction } from './lease_queries.js'

/** Pending inputs of one session, at most. */
export const PENDING_MAX = 1_000
/** Bytes of inputs that a claim returns with one session; the inbox has the others. */
const CLAIMED_BYTES_MAX = 64 * 1024
/** Sessions with due input that one claim looks at. */
const CLAIM_SCAN_MAX = 10_000
/** It looks at no others where so few sessions have one of the first values of its filter. */
const FEW_MAX = 200
/** How many places later the traces of withdrawn inputs are removed. */
const WITHDRAWN_KEPT = 10_000

const field = (name: string, value: string) => `coalesce(',"${name}":' || to_json(${value})::text, '')`

export function inputJson(i: string): string {
  return `concat('{"id":"', ${i}.id, '","session_id":"', ${i}.session_id, '","place":', ${i}.place, ',"mode":"', ${i}.mode, '","state":"',
    CASE WHEN ${i}.withdrawn_at IS NOT NULL THEN 'withdrawn' WHEN ${i}.expires_at <= clock_timestamp() THEN 'expired' ELSE 'pending' END,
    '","kind":"', ${i}.entry_kind, '"', ${field('type', `${i}.type`)}, ${field('key', `${i}.key`)}, ${field('role', `${i}.role`)}, ${field('format', `${i}.format`)},
    CASE WHEN ${i}.withdrawn_at IS NULL THEN CASE WHEN ${i}.entry_kind = 'event' THEN ',"data":' ELSE ',"blob":' END || ${i}.data::text END,
    ',"meta":' || ${i}.meta::text, ${field('reason', `${i}.reason`)},
    ',"created_at":"', ${timestampText(`${i}.created_at`)}, '","not_before":"', ${timestampText(`${i}.not_before`)}, '"',
    ',"expires_at":"' || ${timestampText(`${i}.expires_at`)} || '"', '}')`
}

export const ADD_INPUT = runFunction('add_input', {
  pending_max: PENDING_MAX,
  known_json: inputJson('known'),
  added_json: inputJson('added'),
  by_id: byId('e', 'p_session', 'own_id'),
})

export const WITHDRAW_INPUT = runFunction('withdraw_input', {
  withdrawn_kept: WITHDRAWN_KEPT,
  by_id: byId('e', 'p_session', 'p_id'),
})

export const CLAIM_WORK = runFunction('claim_work', {
  claim_scan_max: CLAIM_SCAN_MAX,
  filter_terms_max: FILTER_TERMS_MAX,
  few_max: FEW_MAX,
  arms: armsText('w.term'),
  claimed_bytes_max: CLAIMED_BYTES_MAX,
  input_json: inputJson('i'),
})

/**
 * A page of the inbox in order. Parameters: $1 project, $2 session, $3 place to begin after, $4 how many, $5 which: pending,
 * due or withdrawn. Rows: place, json; `found`: how many there are with the next page's first.
 */
export const LIST_INPUTS = prepared(
  'list_inputs',
  `
SELECT i.place, ${inputJson('i')} AS json, i.found
FROM (
  SELECT i.*, count(*) OVER () AS found, sum(i.bytes) OVER (ORDER BY i.place) - i.bytes AS before FROM (
    SELECT i.* FROM session_inbox i
    WHERE i.project_id = $1 AND i.session_id = $2 AND i.place > $3
      AND CASE WHEN $5::text = 'withdrawn' THEN i.withdrawn_at IS NOT NULL
        ELSE ${isPendingText('i')} AND ($5::text = 'pending' OR i.not_before <= clock_timestamp() OR ${dueAtOnceText('i')}) END
    ORDER BY i.place LIMIT $4
  ) i
) i
WHERE i.before < ${PIECE_BYTES_MAX} ORDER BY i.place`,
)
