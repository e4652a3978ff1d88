import Type, { type TSchema } from 'typebox'
import { expect } from 'vitest'
import { AnnalsError } from '../../../src/errors.ts'
import type { AppServer } from '../../../src/http/app_server.ts'
import { validateRequests } from '../../../src/http/request/validate.ts'

type Outcome = { value?: unknown; error?: AnnalsError }
type Compiler = (route: { schema: TSchema; httpPart: string }) => (input: unknown) => Outcome

/** The validator of one part of a request, as an app would be given it. */
export function validatorOf(schema: TSchema, httpPart: string): (input: unknown) => Outcome {
  let compile: Compiler | undefined
  const app = { addHook: () => {}, setValidatorCompiler: (compiler: Compiler) => (compile = compiler) }
  validateRequests(app as unknown as AppServer)
  return compile!({ schema, httpPart })
}

/** An object with these fields and no others. */
export const strict = (properties: Record<string, TSchema>) =>
  Type.Object(properties, { additionalProperties: false })

/** What a caller is told of an input that does not fit; undefined for one that does. */
export function messageFor(schema: TSchema, input: unknown, httpPart = 'body'): string | undefined {
  const { error } = validatorOf(schema, httpPart)(input)
  if (error === undefined) return undefined
  expect(error).toBeInstanceOf(AnnalsError)
  expect(error.error).toBe('invalid_request')
  return error.message
}
