/**
 * Marks the sessions of `rows`, a table expression with `session_id`, for every consumer that the project has: for none,
 * it writes nothing. It stands in the statement that changes the sessions, after the lock of their heads, so that a
 * mark is committed with the change.
 *
 * A mark that is there already stays as it is, and its row is not locked: an append waits for a consumer no longer than
 * for the commit that clears the mark. That it was not cleared too early, the consumer makes sure of under the lock of
 * the head: see CLEAR_MARKS. `isNew`: nobody can have locked the heads of sessions that are only now created, so the
 * mark of an earlier session under the same id is taken from whoever is about to clear it.
 */
export function markChanges(project: string, rows: string, { isNew = false } = {}): string {
  const consumers = `(SELECT unnest(p.consumers) AS consumer FROM projects p WHERE p.id = ${project} OFFSET 0)`
  return marksText(
    project,
    consumers,
    rows,
    isNew ? 'DO UPDATE SET due_at = excluded.due_at, lease = NULL' : 'DO NOTHING',
  )
}

/** The same for `consumers`, a table expression with `consumer`. */
export function marksText(
  project: string,
  consumers: string,
  rows: string,
  onConflict = 'DO NOTHING',
): string {
  return `
  INSERT INTO change_marks AS c (project_id, consumer, session_id, marked_at, due_at, failures)
  SELECT ${project}, x.consumer, r.session_id, now(), now(), 0
  FROM ${consumers} x CROSS JOIN ${rows} r
  ORDER BY x.consumer, r.session_id
  ON CONFLICT (project_id, session_id, consumer) ${onConflict}`
}
