import { Nullable, OneOf } from '@annals/kits/contract/schema.js'
import Type from '#typebox'

const Hash = (description: string) => Type.String({ pattern: '^[0-9a-f]{64}$', description })
const Text = Nullable(Type.String())

const Framed = {
  seq: Type.Integer({ minimum: 1 }),
  id: Type.String({ format: 'uuid' }),
  created_at: Type.String({ format: 'date-time' }),
  kind: OneOf(['event', 'message'] as const, 'A kind of entry.'),
}

const Anchored = Type.Object({
  steps: Nullable(
    Type.Array(Type.Object({ ...Framed, content_sha256: Hash('Of the content.') }), {
      description:
        'The entries after this one, up to the anchored head, with the hash of their content; null: they are too many, and an export proves it.',
    }),
  ),
  leaf: Type.Object(
    {
      session_id: Type.String({ format: 'uuid' }),
      seq: Type.Integer({ minimum: 1 }),
      head: Hash('The link of that entry.'),
      state: Type.Literal('live'),
    },
    { description: 'The head that was anchored.' },
  ),
  path: Type.Array(
    Type.Object({
      side: OneOf(['left', 'right'] as const, 'On which side of the hash so far it goes.'),
      hash: Hash('Of the neighbour.'),
    }),
    { description: 'From the leaf to the root of the Merkle tree.' },
  ),
  statement: Type.Object(
    {
      nth: Type.Integer({ minimum: 1 }),
      project: Type.String({ format: 'uuid' }),
      made_at: Type.String({ format: 'date-time' }),
      size: Type.Integer({ minimum: 1 }),
      root: Hash('The root of the tree.'),
      previous: Hash('Of the statement of the anchor before.'),
      public_key: Hash('Ed25519.'),
      signature: Type.String({ minLength: 128, maxLength: 128 }),
    },
    { description: 'What was signed.' },
  ),
})

export const Proof = Type.Object(
  {
    session_id: Type.String({ format: 'uuid' }),
    begins: Type.Boolean({ description: 'Whether the chain begins with the entry.' }),
    forked_proof: Nullable(Hash('Of a fork: the link of the entry that it was forked at.')),
    before: Hash('The link before; of the first one, what a chain begins with.'),
    entry: Type.Object(
      {
        ...Framed,
        type: Text,
        role: Text,
        format: Text,
        key: Text,
        occurred_at: Text,
        data: Type.Object(
          {},
          { additionalProperties: true, description: "An event's data, or a message's blob." },
        ),
        meta: Nullable(Type.Object({}, { additionalProperties: true })),
      },
      { description: 'The entry as it was chained.' },
    ),
    link: Hash('The link of the entry.'),
    head: Type.Object({ seq: Type.Integer({ minimum: 1 }), link: Hash('The link of the last entry.') }),
    anchor: Nullable(Anchored),
  },
  { $id: 'Proof' },
)
