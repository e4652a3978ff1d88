import Type from '#typebox'
import { Count, optional, Strict } from '../contract/schema.js'

export const Sha256 = Type.String({
  pattern: '^[0-9a-f]{64}$',
  description: 'The SHA-256 of the bytes, as 64 hexadecimal digits in lower case.',
  examples: ['9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'],
})

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
