-- parent_id: the key with which somebody signed in to the console. The session is valid only as long as that key is.
ALTER TABLE api_keys ADD COLUMN parent_id uuid;
