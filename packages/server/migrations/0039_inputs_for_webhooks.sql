-- Webhooks hear of input: it is no entry of the log, so that it has deliveries of its own.
--
-- webhook_deliveries.input_session: null in a row that says how far a session is. Otherwise the row is about one input of
--   that session, whose id stands in session_id. Such rows wait for nobody, and end when their input is no longer pending.

SET LOCAL citus.multi_shard_modify_mode TO 'sequential';

ALTER TABLE webhook_deliveries ADD COLUMN input_session uuid;
