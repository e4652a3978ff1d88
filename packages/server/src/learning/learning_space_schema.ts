import {
  JsonInQuery,
  JsonObject,
  Nullable,
  pageQuery,
  Strict,
  Timestamp,
  UserIdentifier,
  Uuid,
} from '@annals/kits/contract/schema.js'
import Type, { type Static } from '#typebox'

const Meta = (description: string) => JsonObject(description, { topic: 'refunds' })

export const LearningSpace = Type.Object(
  {
    id: Uuid('The learning space.'),
    user_id: Nullable(Uuid("The user's UUID; null if the space has no user.")),
    meta: Meta('Any JSON object of the caller, stored with the space; `{}` if never set.'),
    created_at: Timestamp('When it was created.'),
    updated_at: Timestamp('When it last changed.'),
  },
  { $id: 'LearningSpace' },
)

export const CreateLearningSpaceBody = Strict({
  user: Type.Optional(Nullable(UserIdentifier)),
  meta: Type.Optional(Nullable(Meta('Any JSON object, up to 64 KiB.'))),
})
export type CreateLearningSpaceBody = Static<typeof CreateLearningSpaceBody>

export const ListLearningSpacesQuery = Strict({
  user: Type.Optional(UserIdentifier),
  filter_by_meta: Type.Optional(
    JsonInQuery(
      'A JSON object, URL-encoded. Only spaces whose `meta` contains it. `{}` filters nothing.',
      '{"topic":"refunds"}',
    ),
  ),
  ...pageQuery(),
})

export const PatchLearningSpaceBody = Strict({
  meta: Meta('Merged into the stored meta; a null deletes its key.'),
})
