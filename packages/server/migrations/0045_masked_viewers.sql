-- Whether a project's viewers read masks in place of personal data, as masked keys do.

ALTER TABLE projects ADD COLUMN mask_viewers boolean;
