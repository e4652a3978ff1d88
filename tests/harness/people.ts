import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { queryRows } from './sql.ts'

export interface TestPerson {
  member_id: string
  email: string
  /** A personal token, or a session of the console. */
  token: string
  key_id: string
}

/** Somebody with a role in a project, as a sign-in at an issuer leaves it, with a token. */
export async function newPerson(
  databaseUrl: string,
  project_id: string,
  role: string,
  { scopes = ['read', 'write', 'append', 'ingest', 'admin'], is_in_console = false } = {},
): Promise<TestPerson> {
  const member_id = randomUUID()
  const email = `${member_id}@example.com`
  await queryRows(
    databaseUrl,
    `INSERT INTO members (id, project_id, email, issuer, subject, invited_role, created_at)
VALUES ($1, $2, $3, 'https://issuer.example.com', $3, $4, now())`,
    [member_id, project_id, email, role],
  )
  const token = `person-${randomBytes(32).toString('base64url')}`
  const key_id = randomUUID()
  await queryRows(
    databaseUrl,
    `INSERT INTO api_keys (id, project_id, token_hash, name, scopes, origin, created_at, expires_at, member_id)
VALUES ($1, $2, $3, 'test', $4, $5, now(), now() + interval '1 day', $6)`,
    [
      key_id,
      project_id,
      createHash('sha256').update(token).digest(),
      scopes,
      is_in_console ? 'console' : 'personal',
      member_id,
    ],
  )
  return { member_id, email, token, key_id }
}
