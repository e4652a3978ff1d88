import {
  Between,
  Count,
  JsonObject,
  Nullable,
  OneOf,
  pageQuery,
  Strict,
  Text,
  Timestamp,
  UserIdentifier,
  Uuid,
} from '@annals/kits/contract/schema.js'
import Type, { type Static } from '#typebox'

/** Most bytes of an upload, and of each other field. */
export const ZIP_BYTES_MAX = 8 * 1024 * 1024
export const SKILL_FIELD_BYTES_MAX = 256 * 1024

const SkillFile = Type.Object({
  path: Type.String({ description: 'Its path within the skill.', examples: ['scripts/extract.py'] }),
  mime: Type.String({ description: 'Its media type, by its extension.', examples: ['text/x-python'] }),
  bytes: Nullable(Count('Its size; null for a file that is made when it is read.')),
  sha256: Nullable(
    Type.String({ description: 'The blob with its bytes; null for a file that is made when it is read.' }),
  ),
})

const LISTED = {
  id: Uuid('The skill.'),
  user_id: Nullable(Uuid("The user's UUID; null if the skill is the project's.")),
  learning_space_id: Nullable(Uuid('The space that learnt it; null if it was written.')),
  name: Type.String({
    description: 'Its name, from the front matter of SKILL.md.',
    examples: ['fill-forms'],
  }),
  description: Type.String({ description: 'What it does and when to use it, from the same front matter.' }),
  source: OneOf(
    ['written', 'learnt'],
    '`written` by a person and uploaded, or `learnt` by a learning space.',
  ),
  meta: JsonObject('Any JSON object of the caller, stored with the skill; `{}` if never set.', {
    team: 'forms',
  }),
  created_at: Timestamp('When it was created.'),
  updated_at: Timestamp('When it last changed.'),
}

export const ListedSkill = Type.Object(LISTED, { $id: 'ListedSkill' })

export const Skill = Type.Object(
  {
    ...LISTED,
    disk_id: Uuid('The same as `id`: existing clients expect a disk, and there are none here.'),
    file_index: Type.Array(SkillFile, { description: 'Its files, by path.' }),
  },
  { $id: 'Skill' },
)

/** The fields of the form beside the file, as JSON. */
export const SkillFields = Strict({
  user: Type.Optional(Nullable(UserIdentifier)),
  meta: Type.Optional(Nullable(JsonObject('Any JSON object, up to 64 KiB.', { team: 'forms' }))),
})
export type SkillFields = Static<typeof SkillFields>

/** For the description of the API: forms are not validated as a whole. */
export const SkillForm = Strict({
  file: Type.String({
    format: 'binary',
    description: 'A zip with SKILL.md, up to 8 MiB, packed and unpacked.',
  }),
  user: Type.Optional(UserIdentifier),
  meta: Type.Optional(
    Type.String({ contentMediaType: 'application/json', description: 'A JSON object, up to 64 KiB.' }),
  ),
})

export const ListSkillsQuery = Strict({ user: Type.Optional(UserIdentifier), ...pageQuery() })

export const SkillFileQuery = Strict({
  file_path: Text(512, 'Its path within the skill.', 'SKILL.md'),
  expire: Type.Optional(Between(1, 604_800, 'For how many seconds the `url` is valid.', 300)),
})

export const SkillFileContent = Type.Object({
  path: Type.String(),
  mime: Type.String(),
  url: Nullable(
    Type.String({
      description: 'The URL of a file that is not text, with `with_asset_public_url`.',
    }),
  ),
  content: Nullable(
    Type.Object({
      type: Type.String({ description: '`text`, `json`, `csv` or `code`.' }),
      raw: Type.String({ description: 'The text.' }),
    }),
  ),
})

export const IncludeSkillBody = Strict({ skill_id: Uuid('A skill that somebody wrote.') })
export type IncludeSkillBody = Static<typeof IncludeSkillBody>

export const SpaceSkill = Type.Object(
  {
    id: Uuid('This record.'),
    learning_space_id: Uuid('The learning space.'),
    skill_id: Uuid('The skill in it.'),
    created_at: Timestamp('When it was included.'),
  },
  { $id: 'SpaceSkill' },
)
