import { setImmediate as breathe } from 'node:timers/promises'
import { AnnalsError, notFound } from '@annals/kits/errors.js'
import { newId } from '@annals/kits/ids.js'
import type { ListPosition } from '@annals/kits/lists/listed.js'
import { readList } from '@annals/kits/lists/read_list.js'
import { listWhole } from '@annals/kits/lists/tenant_resource.js'
import type { Tenant } from '@annals/kits/postgres/database.js'
import { call } from '@annals/kits/postgres/stored_function.js'
import { SKILL_MD } from '@annals/learning'
import { findBlob, findBlobs, readBlob } from '../../blobs/blob_store.js'
import { createOnce } from '../../log/create_once.js'
import { readPolicy } from '../sessions/space_sessions.js'
import { renderLearntSkill } from '../statements/statements.js'
import {
  CREATE_SKILL,
  EXCLUDE_SKILL,
  INCLUDE_SKILL,
  LIST_SPACE_SKILLS,
  listSkills,
  READ_SKILL,
  READ_SKILL_FILES,
  SPACE_SKILLS_MAX,
} from './skill_queries.js'
import type { SkillFile, ZippedFile } from './skill_zip.js'

const SKILLS_AT_ONCE = 20

/** A record as JSON. `known`: it was there already. */
export interface Stored {
  json: string
  known: boolean
}

/**
 * Stores a skill: its blobs, and then all else at once. The same skill again is not stored twice. `store` stores the
 * blob of a file. @throws AnnalsError skill_exists, and what `store` throws
 */
export async function createSkill(
  tenant: Tenant,
  given: { user: string | undefined; name: string; description: string; meta: string },
  files: readonly SkillFile[],
  store: (file: SkillFile) => Promise<unknown>,
): Promise<Stored> {
  const { user = null, name, description, meta } = given
  const listed = files.map((file) => ({ ...file, bytes: file.bytes.length }))
  const hashes = files.map(({ sha256 }) => sha256)
  const { json } = await createOnce(tenant, undefined, async () => {
    const known = await findBlobs(tenant, hashes)
    for (const file of files) if (!known.has(file.sha256)) await store(file)
    const skill = [newId(), user, newId(), name, description, meta, JSON.stringify(listed)]
    return (await call(tenant.database, CREATE_SKILL, tenant.project_id, ...skill)) ?? undefined
  })
  if (json === '')
    throw new AnnalsError(
      'skill_exists',
      `There is another skill "${name}" of the same owner. Delete it first.`,
    )
  return storedOf(json)
}

function storedOf(answer: string): Stored {
  const known = answer.startsWith('=')
  return { json: known ? answer.slice(1) : answer, known }
}

export async function readSkill({ database, project_id }: Tenant, id: string) {
  const [row] = await database.query(READ_SKILL, [project_id, id])
  if (!row) throw notFound('skill')
  return { json: row.json!, name: row.name!, is_learnt: row.source === 'learnt', created_at: row.created_at! }
}

/** @throws AnnalsError skill_not_found, skill_is_learnt */
export async function requireWritten({ database, project_id }: Tenant, id: string): Promise<void> {
  if ((await readSkill({ database, project_id }, id)).is_learnt) throw new AnnalsError('skill_is_learnt')
}

export function findSkills(tenant: Tenant, user: string | undefined, position: ListPosition) {
  return readList(tenant, listSkills(tenant.project_id, user, position))
}

/** A file of a skill, whose bytes are read when they are asked for. */
export interface StoredFile extends ZippedFile {
  mime: string
  is_text: boolean
  sha256?: string
}

export async function skillFiles(
  { database, project_id }: Tenant,
  skill_id: string,
  path: string | null = null,
): Promise<StoredFile[]> {
  const { is_learnt } = await readSkill({ database, project_id }, skill_id)
  const files = is_learnt
    ? await learntFiles({ database, project_id }, skill_id)
    : (await database.query(READ_SKILL_FILES, [project_id, skill_id, path])).map(
        (row): StoredFile => ({
          path: row.path!,
          mime: row.mime!,
          is_text: row.is_text === 't',
          bytes: Number(row.bytes),
          sha256: row.sha256!,
          read: () => readByHash({ database, project_id }, row.sha256!),
        }),
      )
  const found = path === null ? files : files.filter((file) => file.path === path)
  if (path !== null && found.length === 0) throw notFound('skill_file')
  return found
}

async function* readByHash(tenant: Tenant, sha256: string): AsyncGenerator<Buffer> {
  yield* readBlob(tenant, await findBlob(tenant, sha256))
}

async function learntFiles({ database, project_id }: Tenant, skill_id: string): Promise<StoredFile[]> {
  const { texts } = await renderLearntSkill(database, project_id, skill_id)
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  async function* read() {
    for (const text of texts) {
      yield Buffer.from(text)
      await breathe()
    }
  }
  return [{ path: SKILL_MD, mime: 'text/markdown', is_text: true, bytes, read }]
}

export async function* listSpaceSkills(tenant: Tenant, space_id: string): AsyncGenerator<string> {
  await readPolicy(tenant, space_id)
  yield* listWhole(tenant, space_id, LIST_SPACE_SKILLS, SKILLS_AT_ONCE)
}

const REFUSALS: Readonly<Record<string, () => AnnalsError>> = {
  no_space: () => notFound('learning_space'),
  no_skill: () => notFound('skill'),
  learnt: () => new AnnalsError('skill_is_learnt'),
  other_user: () =>
    new AnnalsError(
      'user_mismatch',
      'The learning space and the skill belong to different users. Use a space of the skill’s user, or one without a user.',
    ),
  full: () =>
    new AnnalsError(
      'quota_exceeded',
      `A learning space has at most ${SPACE_SKILLS_MAX} written skills. Exclude one first.`,
    ),
}

/** @throws AnnalsError learning_space_not_found, skill_not_found, skill_is_learnt, user_mismatch, quota_exceeded */
export async function includeSkill(
  { database, project_id }: Tenant,
  space_id: string,
  skill_id: string,
): Promise<Stored> {
  const answer = await call(database, INCLUDE_SKILL, project_id, space_id, skill_id, newId())
  const refusal = REFUSALS[answer!]
  if (refusal) throw refusal()
  return storedOf(answer!)
}

export async function excludeSkill(
  { database, project_id }: Tenant,
  space_id: string,
  skill_id: string,
): Promise<void> {
  await readPolicy({ database, project_id }, space_id)
  const [skill] = await database.query(READ_SKILL, [project_id, skill_id])
  if (skill?.source === 'learnt') throw new AnnalsError('skill_is_learnt')
  await database.query(EXCLUDE_SKILL, [project_id, space_id, skill_id])
}
