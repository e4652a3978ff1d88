/** What asks every project, because that is its task: housekeeping, background work and verification. */
export const ASKS_EVERY_PROJECT = [
  'find_due_sessions',
  'find_due_spaces',
  'find_due_summaries',
  'find_due_webhooks',
  'find_marks',
  'find_overdue_auto_compactions',
  'find_overdue_auto_compactions_held_until',
  'find_overdue_change_marks',
  'find_overdue_erased_sessions',
  'find_overdue_learning_spaces',
  'find_overdue_project_consumers',
  'find_overdue_session_runs',
  'find_overdue_session_runs_wake_at',
  'find_overdue_space_sessions',
  'find_overdue_webhook_deliveries',
  'find_projects_with_discarded_objects',
  'find_projects_with_old_blobs',
  'find_projects_with_remains',
  'find_recounts',
  'find_scans',
  'find_search_refills',
]
/** As verification does, a table at a time. */
export const VERIFIES_EVERY_PROJECT = /^verify_(?:measure|next_project)_/
