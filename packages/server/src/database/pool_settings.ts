/**
 * The one statement of a flush has one good plan: by primary keys, whatever its parameters. Planning it anew took
 * longer than running it (1.9 against 0.8 ms for a flush of one event), and a plan made while the tables were
 * empty must not stay a sequential scan when they have grown.
 */
export const APPEND_SETTINGS = { plan_cache_mode: 'force_generic_plan', enable_seqscan: 'off' }
