import { type FactsOf, mediaFacts } from '@annals/messages'
import { AnnalsError } from '../../errors.js'
import type { TakenBytes } from './find_base64.js'
import {
  type AttachmentLimits,
  type BodyOutcome,
  type BodyParts,
  bodyTooLarge,
  type RewriteText,
  readRewritten,
  type TakeBody,
} from './read_body.js'
import { takeOutBytes } from './take_out_bytes.js'
import { bodyValidator, type Validate } from './validate.js'

/** The JSON of a request that was sent as a form, and its files. */
export interface FormBody {
  body: Buffer
  taken: TakenBytes[]
}

/** How an operation's form is read. With `attaches`, its JSON may have bytes in it, as a body that is JSON may. */
export interface FormParts {
  read(content_type: string, body: Buffer, blob_bytes_max: number): Promise<FormBody | AnnalsError>
  attaches?: true
}

declare module '../../threads/work_thread.js' {
  interface ThreadWork extends BodyWork {}
}

export interface BodyWork {
  /**
   * Processes a body as on the event loop: the same functions in the same order. With `limits`, the bytes of attachments
   * are taken out of it first.
   */
  takeBody(operation: string, bytes: Uint8Array, limits?: AttachmentLimits, rewriting?: unknown): BodyOutcome
  takeForm(
    operation: string,
    content_type: string,
    bytes: Uint8Array,
    limits: AttachmentLimits,
    rewriting?: unknown,
  ): Promise<BodyOutcome>
}

/** Takes bodies and forms on the second thread, by the ids of operations. `rewrite`: see RewritesBodies. */
export function bodyWork(
  bodies: Readonly<Record<string, BodyParts>>,
  forms: Readonly<Record<string, FormParts>>,
  rewrite: RewriteText,
): BodyWork {
  const validators = new Map<string, Validate>()
  const takeBody: BodyWork['takeBody'] = (operation, bytes, limits, rewriting) => {
    const [schema, take] = bodies[operation]!
    const sent = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const { rest_bytes_max = Number.POSITIVE_INFINITY, blob_bytes_max = 0 } = limits ?? {}
    const { body, taken: attachments } = takeOutBytes(sent, rest_bytes_max, blob_bytes_max)
    if (body.length > rest_bytes_max) return { stage: 'reading', error: bodyTooLarge(rest_bytes_max) }
    const json = readRewritten(body, (json) =>
      rewriting === undefined ? undefined : rewrite(operation, json, rewriting),
    )
    if (json instanceof AnnalsError) return { stage: 'reading', error: json }
    let validate = validators.get(operation)
    if (!validate) {
      validate = bodyValidator(schema)
      validators.set(operation, validate)
    }
    const { error, value } = validate(json.value)
    if (error) return { stage: 'validation', error }
    try {
      const taken = (take as TakeBody<unknown, unknown>)(value, json.text, json.bytes, factsIn(attachments))
      return { stage: 'taken', text: json.text, sent: json.sent, taken, attachments }
    } catch (error) {
      if (error instanceof AnnalsError) return { stage: 'taking', error }
      throw error
    }
  }
  const takeForm: BodyWork['takeForm'] = async (operation, content_type, bytes, limits, rewriting) => {
    const { read, attaches } = forms[operation]!
    const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const form = await read(content_type, body, limits.blob_bytes_max)
    if (form instanceof AnnalsError) return { stage: 'reading', error: form }
    const files = form.taken.map(({ sha256, bytes }) => ({ sha256, bytes }))
    const outcome = takeBody(operation, form.body, attaches && limits, rewriting)
    return outcome.stage === 'taken'
      ? { ...outcome, attachments: [...files, ...outcome.attachments] }
      : outcome
  }
  return { takeBody, takeForm }
}

function factsIn(attachments: readonly TakenBytes[]): FactsOf {
  const known = new Map(attachments.map(({ sha256, bytes }) => [sha256, mediaFacts(bytes)]))
  return (sha256) => known.get(sha256)
}
