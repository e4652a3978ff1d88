import type { ServerResponse } from 'node:http'

/** Bytes of a buffer: most pages of 1,000 entries fit. */
const BUFFER_BYTES = 1024 * 1024
/** Buffers that wait for the next answers. */
const KEPT_MAX = 16
/** UTF-8 of one UTF-16 code unit. */
const BYTES_A_UNIT_MAX = 3

const kept: Buffer[] = []

/**
 * A long answer, collected as bytes in a buffer that later answers use again. As texts, answers on their way to their
 * clients would survive V8's young generation, and lie in its heap as garbage for long afterwards. What does not fit
 * stays text.
 */
export class AnswerBytes {
  private readonly buffer = kept.pop() ?? Buffer.allocUnsafeSlow(BUFFER_BYTES)
  private readonly rest: string[] = []
  private filled = 0
  private rest_bytes = 0

  constructor(response: ServerResponse) {
    // It comes when nothing of the answer waits to be written any more.
    response.once('close', () => {
      if (kept.length < KEPT_MAX) kept.push(this.buffer)
    })
  }

  /** Its length in bytes. */
  get length(): number {
    return this.filled + this.rest_bytes
  }

  get parts(): Array<Buffer | string> {
    return [this.buffer.subarray(0, this.filled), ...this.rest]
  }

  add(text: string): void {
    const room = BUFFER_BYTES - this.filled
    const fits =
      this.rest.length === 0 && (BYTES_A_UNIT_MAX * text.length <= room || Buffer.byteLength(text) <= room)
    if (fits) {
      this.filled += this.buffer.write(text, this.filled)
    } else {
      this.rest.push(text)
      this.rest_bytes += Buffer.byteLength(text)
    }
  }
}
