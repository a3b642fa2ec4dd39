-- Audit logs of Flyball in PostgreSQL 12 or newer. `flyball audit migrate` runs this; it may be run again.
-- The exporter needs INSERT and SELECT on the table and nothing else; give nobody UPDATE or DELETE:
--   GRANT INSERT, SELECT ON flyball_audit TO flyball_exporter;
CREATE TABLE IF NOT EXISTS flyball_audit (
  -- The order in which lines came.
  n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  prefix text NOT NULL,
  limiter text NOT NULL,
  -- change, note: entries. gap: the log goes on elsewhere. head: its newest hash at a time.
  kind text NOT NULL,
  stream_id text NOT NULL,
  epoch bigint NOT NULL,
  revision bigint NOT NULL,
  at timestamptz NOT NULL,
  actor text,
  reason text,
  sentence text,
  hash text NOT NULL,
  -- The line of the export, byte for byte: what was hashed, or signed.
  line text NOT NULL
);

-- The same entry is stored once, whoever sends it.
CREATE UNIQUE INDEX IF NOT EXISTS flyball_audit_entry
  ON flyball_audit (prefix, limiter, stream_id, hash) WHERE kind IN ('change', 'note');
CREATE INDEX IF NOT EXISTS flyball_audit_order ON flyball_audit (prefix, limiter, n);
CREATE INDEX IF NOT EXISTS flyball_audit_time ON flyball_audit (prefix, at);
