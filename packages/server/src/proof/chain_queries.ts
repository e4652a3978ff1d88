import { timestampText } from '@annals/kits/lists/resource_json.js'
import { storedFunctionIn } from '@annals/kits/postgres/stored_function.js'

/*
 * The links of a chain, as docs/proof.md specifies them. The stored text of a value is its canonical form: PostgreSQL
 * writes equal jsonb alike, with the members of an object by the length of their names and then by their bytes.
 */

/** The text before the hash of an entry's content. `i`: the entry. */
export const FRAME = `concat(i.seq, E'\\n', i.id, E'\\n', ${timestampText('i.created_at')}, E'\\n', i.kind, E'\\n')`

/** The content of an entry `i`: JSON of all that never changes in it. */
export const CONTENT = `concat('[', coalesce(to_json(i.type)::text, 'null'), ', ', coalesce(to_json(i.role)::text, 'null'), ', ',
  coalesce(to_json(i.format)::text, 'null'), ', ', coalesce(to_json(i.key)::text, 'null'), ', ',
  coalesce('"' || ${timestampText('i.occurred_at')} || '"', 'null'), ', ', i.data::text, ', ', coalesce(i.meta::text, 'null'), ']')`

/** The beginning of a chain. `s`: the session; `g.after_seq`: the last seq that is not in the chain. */
export const GENESIS = `sha256(convert_to(concat(E'annals-proof-1\\n', s.id, E'\\n', g.after_seq, E'\\n', s.forked_proof), 'UTF8'))`

const PIECES = { frame: FRAME, content: CONTENT, genesis: GENESIS }

/** Chains the entries of a flush. APPEND_ENTRIES calls it. */
export const CHAIN_ENTRIES = storedFunctionIn('proof/chain_entries.sql', PIECES)

/** Chains entries that are stored already. */
export const CHAIN_STORED = storedFunctionIn('proof/chain_stored.sql', PIECES)
