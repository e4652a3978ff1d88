import { prepared } from '@annals/kits/postgres/statement.js'

/** Parameters: $1 project, $2 user. */
export const IDENTIFIER_OF = prepared(
  'find_user_identifier',
  'SELECT u.identifier FROM users u WHERE u.project_id = $1 AND u.id = $2',
)
