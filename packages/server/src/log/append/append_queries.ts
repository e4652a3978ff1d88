import { MOVE_TERMS_VARIABLES, moveTerms } from '../../lists/listed.js'
import { mergedJson } from '../../lists/resource_json.js'
import { joinedText } from '../../postgres/column_aggregates.js'
import { storedFunctionIn } from '../../postgres/stored_function.js'
import { CHAIN_ENTRIES, CHAIN_STORED } from '../../proof/chain_queries.js'
import { seqText } from '../read/compaction_queries.js'
import { VIEW_COLUMNS } from '../read/read_queries.js'
import { SESSION_LIST } from './configs_queries.js'

/** Carries out the retractions of a flush. APPEND_ENTRIES calls it. */
export const RETRACT_ENTRIES = storedFunctionIn('log/append/retract_entries.sql', {
  from_seq: seqText('from_seq'),
  to_seq: seqText('to_seq'),
  item_columns: joinedText(VIEW_COLUMNS.item),
})

/** One flush. */
export const APPEND_ENTRIES = storedFunctionIn(
  'log/append/append_entries.sql',
  {
    retract_entries: RETRACT_ENTRIES.name,
    chain_entries: CHAIN_ENTRIES.name,
    chain_stored: CHAIN_STORED.name,
    merged_configs: mergedJson('before.configs', 'patch'),
    move_terms: moveTerms(SESSION_LIST, 'before', 'after'),
    terms_variables: MOVE_TERMS_VARIABLES,
  },
  ['session_heads', 'entries', 'idempotency_keys', 'change_marks'],
)
