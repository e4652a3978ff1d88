import { switchConsumer } from '@annals/kits/changes/project_consumers.js'
import { AnnalsError, invalidRequest, notFound, StartError } from '@annals/kits/errors.js'
import { newId } from '@annals/kits/ids.js'
import type { Database, Queryable, Tenant } from '@annals/kits/postgres/database.js'
import { isForeignKeyViolation, isUniqueViolation } from '@annals/kits/postgres/database_errors.js'
import { audited } from './audit.js'
import {
  CHANGE_PROJECT,
  CREATE_API_KEY,
  CREATE_PROJECT,
  FIND_ONLY_PROJECT,
  FIND_PROJECT,
  HAS_API_KEY,
  LIST_API_KEYS,
  LIST_PROJECTS,
  PROJECT_EXISTS,
  READ_QUOTAS,
  RESTORE_OWN_API_KEY,
  REVOKE_API_KEY,
  REVOKE_OTHER_OWN_API_KEYS,
} from './project_queries.js'
import { numberOf, type Quotas, quotasOf } from './quotas.js'
import { ALL_SCOPES, hashToken, mintToken, type Scope } from './tokens/token.js'

/** A project's settings. Null means the default: see the contract. */
export interface ProjectSettings {
  retention_days?: number | null
  rate_limit_per_second?: number | null
  max_sessions?: number | null
  max_bytes?: number | null
  max_blob_bytes?: number | null
  max_tails?: number | null
  max_model_tokens_per_day?: number | null
  auto_compact_tokens?: number | null
  search?: boolean | null
  proof?: boolean | null
  mask_viewers?: boolean | null
  audit_reads?: 'people' | 'all' | null
  audit_reads_days?: number | null
  outcomes?: Record<string, 'failed' | 'passed'> | null
  model?: { url: string; name: string; key?: string } | null
}

/** Of a model: a user in a URL would be a password in sight. */
export const MODEL_PATTERNS = {
  url: /^(?=.{1,2048}$)https?:\/\/[^@]+$/,
  name: /^[^\0]{1,200}$/,
  key: /^[\x21-\x7e]{1,1000}$/,
} as const

/** For the audit, which has no secret. */
function withoutKey({ model, ...settings }: ProjectSettings): ProjectSettings {
  return { ...settings, ...(model !== undefined && { model: model && { url: model.url, name: model.name } }) }
}

/** A project as JSON, and the secret of its first token, which is stored nowhere. */
export interface NewProject {
  json: string
  token: string
}

/** The creator of a token: an operator, or the service at its first start. */
export type Origin = 'issued' | 'first_start' | 'environment' | 'sign_in_code' | 'console' | 'personal'

export interface TokenRequest {
  name: string
  scopes: readonly Scope[]
  /** RFC 3339; undefined: it does not expire. */
  expires_at?: string | undefined
  /** Whether it reads no personal data. */
  masked?: boolean
  /** The id of a token without which this one is not valid. */
  parent_id?: string | undefined
  /** The member whose it is: it allows no more than the role, and ends with it. */
  member_id?: string | undefined
}

/** Creates a project with its first token. @throws AnnalsError project_exists */
export async function createProject(
  database: Database,
  actor: string,
  name: string,
  settings: ProjectSettings = {},
): Promise<NewProject> {
  return audited(database, actor, async (connection) => {
    const [row] = await connection.query(CREATE_PROJECT, [newId(), name, JSON.stringify(settings)])
    if (!row)
      throw new AnnalsError('project_exists', `There is already a project named ${JSON.stringify(name)}.`)
    await switchConsumers({ database: connection, project_id: row.id! }, settings)
    const token = mintToken()
    await storeToken(connection, row.id!, token, { name: 'first', scopes: ALL_SCOPES }, 'issued')
    const act = {
      action: 'project.create',
      project_id: row.id!,
      details: { name, ...withoutKey(settings) },
    } as const
    return { act, result: { json: row.json!, token } }
  })
}

/** Switches on what looks at sessions that change, or off, as far as the settings say so. */
async function switchConsumers(tenant: Tenant, { search, auto_compact_tokens }: ProjectSettings) {
  if (search !== undefined) await switchConsumer(tenant, 'search', search === true)
  if (auto_compact_tokens !== undefined)
    await switchConsumer(tenant, 'compaction', auto_compact_tokens !== null)
}

export async function changeProject(
  database: Database,
  actor: string,
  project_id: string,
  settings: ProjectSettings,
): Promise<string> {
  return audited(database, actor, async (connection) => {
    const [row] = await connection.query(CHANGE_PROJECT, [project_id, JSON.stringify(settings)])
    if (!row) throw notFound('project')
    await switchConsumers({ database: connection, project_id }, settings)
    return { act: { action: 'project.change', project_id, details: withoutKey(settings) }, result: row.json! }
  })
}

/** Notes an act on a whole project before it is done. @throws AnnalsError project_not_found */
export async function noteAct(
  database: Database,
  actor: string,
  action: 'project.delete' | 'project.restore',
  project_id: string,
): Promise<void> {
  await audited(database, actor, async (connection) => {
    await checkProject(connection, project_id)
    return { act: { action, project_id, details: {} }, result: undefined }
  })
}

export async function readQuotas({
  database,
  project_id,
}: Tenant): Promise<Quotas & { rate_limit_per_second: number | undefined }> {
  const [row] = await database.query(READ_QUOTAS, [project_id])
  if (!row) throw notFound('project')
  return { ...quotasOf(row), rate_limit_per_second: numberOf(row.rate_limit_per_second) }
}

export async function listProjects(database: Queryable): Promise<string[]> {
  return (await database.query(LIST_PROJECTS, [])).map((row) => row.json!)
}

export async function listNamedProjects(database: Queryable): Promise<Array<{ id: string; name: string }>> {
  return (await database.query(LIST_PROJECTS, [])).map((row) => ({ id: row.id!, name: row.name! }))
}

export async function findProject(database: Queryable, name_or_id: string | undefined): Promise<string> {
  return (await findNamedProject(database, name_or_id)).id
}

/**
 * A project, given its name or id, or the only one if neither is given.
 * @throws AnnalsError project_not_found, invalid_request if none is named and there are several
 */
export async function findNamedProject(
  database: Queryable,
  name_or_id: string | undefined,
): Promise<{ id: string; name: string }> {
  const [row, other] =
    name_or_id === undefined
      ? await database.query(FIND_ONLY_PROJECT, [])
      : await database.query(FIND_PROJECT, [name_or_id])
  if (!row) {
    const named = `There is no project ${JSON.stringify(name_or_id)}: see \`annals project list\`.`
    const sentence = name_or_id === undefined ? 'There is no project yet: start the service.' : named
    throw new AnnalsError('project_not_found', sentence)
  }
  if (other)
    throw invalidRequest(
      'There are several projects: name one (--project, or after `project set`). `annals project list` lists them.',
    )
  return { id: row.id!, name: row.name! }
}

export async function checkProject(database: Queryable, project_id: string): Promise<void> {
  if ((await database.query(PROJECT_EXISTS, [project_id])).length === 0) throw notFound('project')
}

/**
 * Called where a write names a row that is not there: a key may be cached for some seconds longer than its project is there.
 * @throws AnnalsError unauthorized
 */
export async function requireProject({ database, project_id }: Tenant): Promise<void> {
  if ((await database.query(PROJECT_EXISTS, [project_id])).length === 0) throw new AnnalsError('unauthorized')
}

/**
 * Creates a token for a project. Returns it as JSON with its secret in `token`, which is shown only this time.
 * @throws AnnalsError project_not_found
 */
export async function issueToken(
  database: Database,
  actor: string,
  project_id: string,
  request: TokenRequest,
): Promise<string> {
  const is_personal = request.member_id !== undefined
  const token = mintToken(is_personal ? 'pat' : 'sk')
  const json = await audited(database, actor, async (connection) => {
    const stored = await storeToken(
      connection,
      project_id,
      token,
      request,
      is_personal ? 'personal' : 'issued',
    )
    const { id: token_id } = JSON.parse(stored) as { id: string }
    const { masked, ...named } = request
    const details = { token_id, ...named, ...(masked && { masked }) }
    return { act: { action: 'token.create', project_id, details }, result: stored }
  }).catch((error: unknown) => {
    // Not looked up before: the project may be erased in between.
    throw isForeignKeyViolation(error) ? notFound('project') : error
  })
  return `{"token":${JSON.stringify(token)},${json.slice(1)}`
}

export async function listTokens(database: Queryable, project_id: string): Promise<string[]> {
  return (await database.query(LIST_API_KEYS, [project_id])).map((row) => row.json!)
}

/** Revokes a token; revoking it again changes nothing. @throws AnnalsError token_not_found */
export async function revokeToken(
  database: Database,
  actor: string,
  project_id: string,
  token_id: string,
): Promise<string> {
  return audited(database, actor, async (connection) => {
    const [row] = await connection.query(REVOKE_API_KEY, [project_id, token_id])
    if (!row) throw notFound('token')
    return { act: { action: 'token.revoke', project_id, details: { token_id } }, result: row.json! }
  })
}

/**
 * Ensures that the project `default` exists and has a key. A configured key is accepted, and other keys that the
 * service created by itself are revoked. Without one, the first start creates a key and returns it to be shown.
 * @throws StartError if the configured key is another project's
 */
export async function ensureDefaultProject(
  database: Database,
  given: string | undefined,
): Promise<string | undefined> {
  return database
    .transaction(async (connection) => {
      // If two first starts run at once, one inserts the project; the other waits for it here and finds a key below.
      const [made] = await connection.query(CREATE_PROJECT, [newId(), 'default', '{}'])
      const project_id = made?.id ?? (await findProject(connection, 'default'))
      const store = (token: string, name: string, origin: Origin) =>
        storeToken(connection, project_id, token, { name, scopes: ALL_SCOPES }, origin)
      if (given === undefined) {
        if ((await connection.query(HAS_API_KEY, [project_id])).length > 0) return undefined
        const token = mintToken()
        await store(token, 'first start', 'first_start')
        return token
      }
      const hash = hashToken(given)
      await connection.query(REVOKE_OTHER_OWN_API_KEYS, [project_id, hash])
      const restored = await connection.query(RESTORE_OWN_API_KEY, [project_id, hash])
      if (restored.length === 0) await store(given, 'ANNALS_API_KEY', 'environment')
      return undefined
    })
    .catch((error: unknown) => {
      if (!isUniqueViolation(error)) throw error
      throw new StartError(
        'ANNALS_API_KEY is a key of another project, but a service uses it as the key of "default". Unset it for `annals serve`, or set another.',
        { cause: error },
      )
    })
}

/** Stores a token's hash. Returns the token as JSON, without its secret. */
export async function storeToken(
  database: Queryable,
  project_id: string,
  token: string,
  request: TokenRequest,
  origin: Origin,
): Promise<string> {
  const { name, scopes, expires_at = null, parent_id = null, member_id = null, masked = false } = request
  const key = [newId(), project_id, hashToken(token), name, [...scopes], origin, expires_at, parent_id]
  const [row] = await database.query(CREATE_API_KEY, [...key, member_id, masked])
  return row!.json!
}
