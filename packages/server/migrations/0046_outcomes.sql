-- A project's own words for how its sessions ended, such as {"submitted": "passed"}, where configs have them.

ALTER TABLE projects ADD COLUMN outcomes jsonb;
