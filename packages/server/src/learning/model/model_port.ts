import type { Prompt } from '@annals/learning'

/** Where a model is, and who asks. */
export interface ModelAddress {
  url: string
  name: string
  key?: string | undefined
}

export interface ModelAnswer {
  text: string
  tokens_in: number
  tokens_out: number
}

/** Asks a model for JSON of a schema. @throws ModelFailure */
export type AskModel = (
  address: ModelAddress,
  request: { prompt: Prompt; schema_name: string; schema: object; signal: AbortSignal },
) => Promise<ModelAnswer>

/**
 * A model gave no answer that is of use. `away`: nobody would get one now, so asking waits; otherwise it is about this
 * input. The message is shown to the project.
 */
export class ModelFailure extends Error {
  override readonly name = 'ModelFailure'

  constructor(
    message: string,
    readonly is_away: boolean,
    /** Tokens that were used nevertheless. */
    readonly tokens: Pick<ModelAnswer, 'tokens_in' | 'tokens_out'> = { tokens_in: 0, tokens_out: 0 },
  ) {
    super(message)
  }
}
