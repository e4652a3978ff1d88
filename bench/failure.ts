/** A reason to give up, as a sentence for the person who started the benchmark. */
export class BenchFailure extends Error {
  override readonly name = 'BenchFailure'
}
