/** A reason to give up, as a sentence for the person who started the replay; it is printed without a stack. */
export class ReplayFailure extends Error {
  override readonly name = 'ReplayFailure'
}
