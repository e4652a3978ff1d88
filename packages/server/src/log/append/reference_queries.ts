/**
 * Stores the references to blobs, for entries that have any. `p_references`: a JSON array of `place` (index of the session),
 * `behind` (position after the head) and `sha256`, or null. A blob that is not there, or is just being deleted, violates
 * the foreign key, and nothing is stored. Blobs are locked in the order of their hashes, as where they are deleted.
 */
export const REFER = `
  IF p_references IS NOT NULL THEN
    INSERT INTO blob_references AS r (project_id, owner_id, seq, sha256)
    SELECT p_project, p_sessions[i.place], open_seqs[i.place] + i.behind, i.sha256
    FROM jsonb_to_recordset(p_references) AS i (place int, behind int, sha256 text)
    WHERE open_seqs[i.place] IS NOT NULL ORDER BY i.sha256
    ON CONFLICT DO NOTHING;
  END IF;`

export const REFERENCES = 'p_references jsonb'
