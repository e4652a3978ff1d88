/** What to do about a finding. `docs/operations.md` has the statements. */
export const LOST =
  'Rows were lost or changed outside Annals. Export the session in its current state, then restore it from a backup'
export const HEAD =
  'The log is right and the head is wrong: something other than Annals wrote here, or a restore was incomplete. Rebuild the head'
export const ORPHAN =
  'No request reaches these rows: a restore was incomplete. Repeat the restore, or delete them'
export const UNLISTED =
  'Something other than Annals wrote here, or a restore was incomplete. Write the configs (or meta) again unchanged, which rebuilds the index'
export const ODD =
  'Nothing that Annals does causes this; find out what wrote here. Correct it, or decide to leave it'
