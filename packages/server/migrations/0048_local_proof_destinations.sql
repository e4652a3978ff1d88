-- Where anchors go is the coordinator's alone, so that a machine that is away stops the anchors of no other's projects.

DO $citus$
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'proof_destinations'::regclass) THEN
      PERFORM undistribute_table('proof_destinations');
    END IF;
  END IF;
END
$citus$;
