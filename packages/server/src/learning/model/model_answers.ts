import type { Candidate, Decision } from '@annals/learning'
import Type, { Compile, type TSchema } from '#typebox'

const exact = <P extends Record<string, TSchema>>(properties: P) =>
  Type.Object(properties, { additionalProperties: false })
const orNull = (schema: TSchema) => Type.Union([schema, Type.Null()])

const Reflection = exact({
  statements: Type.Array(
    exact({
      kind: Type.Enum(['procedure', 'pitfall', 'fact', 'preference']),
      text: Type.String(),
      tool: orNull(Type.String()),
      cites: Type.Array(exact({ run: Type.String(), seq: Type.Integer(), quote: Type.String() })),
    }),
  ),
})

const Curation = exact({
  decisions: Type.Array(
    exact({
      candidate: Type.Integer(),
      action: Type.Enum(['add', 'support', 'contradict', 'nothing']),
      statement: orNull(Type.Integer()),
    }),
  ),
})

/** What a model is asked for, by step: the schema that goes to it, and that its answer is checked against. */
export const ANSWERS = {
  reflect: { schema: Reflection, check: Compile(Reflection) },
  curate: { schema: Curation, check: Compile(Curation) },
} as const

export type Step = keyof typeof ANSWERS
export interface Answer {
  reflect: { statements: Candidate[] }
  curate: { decisions: Decision[] }
}
