/** A reason why the fuzzer cannot run, as a sentence. */
export class FuzzFailure extends Error {
  override readonly name = 'FuzzFailure'
}
