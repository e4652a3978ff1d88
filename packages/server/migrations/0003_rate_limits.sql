-- How many requests a second each token of a project may make, where that differs from the service's default:
-- null is the default, 0 any number. It is read together with the token, so that a request costs no query of its own.

ALTER TABLE projects ADD COLUMN rate_limit_per_second integer;
