-- Webhooks: where a project wants to be told of new entries.
--
-- webhooks: secret is kept as it is, since it signs; nobody is shown it again. events: `message`, `event`, or
--   `event.<type>`. Entries stored before created_at are not sent. given_up: how many entries were not delivered within
--   a day.
-- webhook_deliveries: how far a session is with a webhook, as long as it has entries that may have to be sent: those
--   behind delivered_seq up to through_seq, one after the other. So the entries of a session arrive in order, and a
--   receiver that is away costs a row for each session, not for each entry. attempts: of the next entry. not_before: from
--   then on somebody may take it up; who does moves it to the end of the lease. They go with their webhook by the foreign
--   key; those of a session that is gone, when they are next taken up.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

CREATE TABLE webhooks (
  project_id uuid NOT NULL,
  id uuid NOT NULL,
  url text NOT NULL,
  events text[] NOT NULL,
  secret text NOT NULL,
  created_at timestamptz NOT NULL,
  last_error text,
  last_error_at timestamptz,
  given_up bigint NOT NULL,
  PRIMARY KEY (project_id, id)
);

CREATE TABLE webhook_deliveries (
  project_id uuid NOT NULL,
  webhook_id uuid NOT NULL,
  session_id uuid NOT NULL,
  delivered_seq bigint NOT NULL,
  through_seq bigint NOT NULL,
  attempts integer NOT NULL,
  not_before timestamptz NOT NULL,
  lease uuid,
  PRIMARY KEY (project_id, webhook_id, session_id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    -- Where the other tables are on one machine still, `annals distribute` moves these with them.
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'users'::regclass) THEN
      PERFORM create_distributed_table('webhooks', 'project_id', colocate_with => 'users');
      PERFORM create_distributed_table('webhook_deliveries', 'project_id', colocate_with => 'users');
    END IF;
  END IF;
END
$citus$;

ALTER TABLE webhooks ADD CONSTRAINT webhooks_project_fk FOREIGN KEY (project_id) REFERENCES projects (id);
ALTER TABLE webhook_deliveries ADD CONSTRAINT webhook_deliveries_webhook_fk
  FOREIGN KEY (project_id, webhook_id) REFERENCES webhooks (project_id, id) ON DELETE CASCADE;
CREATE INDEX webhook_deliveries_by_due ON webhook_deliveries (project_id, webhook_id, not_before);
