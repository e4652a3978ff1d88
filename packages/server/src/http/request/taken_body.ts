import type { TakenBytes } from '../../blobs/take_out_bytes.js'
import { AnnalsError } from '../../errors.js'

/**
 * The result for a body: what its operation takes from it, or why it is refused and at which stage of the request.
 */
export type BodyOutcome =
  | { stage: 'taken'; text: string; taken: unknown; attachments: TakenBytes[] }
  | { stage: 'reading' | 'validation' | 'taking'; error: AnnalsError }

/** Bytes of a body beside its attachments, and of each of these. */
export interface AttachmentLimits {
  rest_bytes_max: number
  blob_bytes_max: number
}

/** Stands for a body that was read, checked and processed on the work thread. */
export class TakenBody {
  constructor(readonly outcome: Exclude<BodyOutcome, { stage: 'reading' }>) {}
}

/** An error from the work thread, which lost its class on the way. */
export function revived({ error, message }: Pick<AnnalsError, 'error' | 'message'>): AnnalsError {
  return new AnnalsError(error, message)
}
