import { boundedFetch } from '@annals/kits/outgoing/bounded_fetch.js'
import { AnswerTooLong } from '@annals/kits/outgoing/bounded_request.js'
import {
  answerOf,
  failureOfStatus,
  type ModelAddress,
  type ModelAnswer,
  ModelFailure,
  type Prompt,
  sentTokens,
} from '@annals/learning'
import type OpenAI from 'openai'

/** Asks a model for JSON of a schema. @throws ModelFailure */
export type AskModel = (
  address: ModelAddress,
  request: { prompt: Prompt; schema_name: string; schema: object; signal: AbortSignal },
) => Promise<ModelAnswer>

const ANSWER_BYTES_MAX = 256 * 1024
const ANSWER_TOKENS_MAX = 8_192

/** A model with an OpenAI-compatible API. Its library is loaded when it is first asked. */
export function openAiModel(ms_max: number): AskModel {
  return async (address, { prompt, schema_name, schema, signal }) => {
    const { default: Client } = await import('openai')
    const client = newClient(Client, address, ms_max)
    // Of the whole answer: the library's own limit ends with its headers.
    const deadline = AbortSignal.timeout(ms_max)
    try {
      const completion = await client.chat.completions.create(
        {
          model: address.name,
          max_completion_tokens: ANSWER_TOKENS_MAX,
          messages: [
            { role: 'system', content: prompt.system },
            { role: 'user', content: prompt.user },
          ],
          response_format: {
            type: 'json_schema',
            json_schema: { name: schema_name, strict: true, schema: schema as Record<string, unknown> },
          },
        },
        { signal: AbortSignal.any([signal, deadline]) },
      )
      return answerOf(completion, prompt)
    } catch (error) {
      if (error instanceof ModelFailure || signal.aborted) throw error
      throw failureOf(deadline.aborted ? deadline.reason : error, ms_max, prompt)
    }
  }
}

function newClient(Client: typeof OpenAI, { url, key }: ModelAddress, ms_max: number): OpenAI {
  return new Client({
    baseURL: url,
    apiKey: key ?? 'none',
    organization: null,
    project: null,
    timeout: ms_max,
    // Further attempts are made later, and counted.
    maxRetries: 0,
    logLevel: 'off',
    fetch: boundedFetch(ANSWER_BYTES_MAX),
  })
}

/** Without what the server said, which may be anything. */
function failureOf(error: unknown, ms_max: number, prompt: Prompt): ModelFailure {
  const { status, name, cause, message } = error as Error & { status?: number; cause?: { code?: string } }
  const answered = (sentence: string) =>
    new ModelFailure(sentence, false, { tokens_in: sentTokens(prompt), tokens_out: 0 })
  if (error instanceof AnswerTooLong || cause instanceof AnswerTooLong)
    return answered('The model answered too much.')
  if (name === 'TimeoutError' || message === 'Request timed out.')
    return new ModelFailure(`The model did not answer within ${ms_max / 1_000} s.`, true)
  if (status === undefined && error instanceof SyntaxError)
    return answered('The model’s server sent something that is not JSON.')
  if (status === undefined) return new ModelFailure('The model could not be reached.', true)
  return failureOfStatus(status)
}
