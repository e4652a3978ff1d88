import Type from '#typebox'
import { Count, optional, Sha256, Strict } from '../contract/schema.js'

export const Blob = Type.Object(
  {
    sha256: Sha256,
    bytes: Count('How many bytes it has.'),
  },
  { $id: 'Blob' },
)

export const AssetQuery = Strict(
  optional({
    sha256: Sha256,
    s3_key: Type.String({ ...Sha256, description: 'The same, as clients read it from `asset`.' }),
  }),
)

export const BlobHeaders = Type.Object(
  optional({
    range: Type.String({
      description: 'One range of bytes, such as `bytes=0-1023`. Several, or another unit, count as none.',
    }),
  }),
)
