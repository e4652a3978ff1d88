/** A try for something: when it began, and its outcome; none if it failed. */
interface Try<T> {
  began: number
  outcome: Promise<T>
  answer: T | undefined
}

/**
 * Tries of many callers who wait for the same, of which each thing that comes is for one. They try one after another, and
 * a try that found nothing, or failed, is also that of all who came before it began. So what comes costs two tries or
 * three, and not one for each who waits.
 */
export class SharedTries<T> {
  private readonly last = new Map<string, Promise<Try<T> | undefined>>()

  /**
   * The outcome of a try that began after this call; undefined: nothing was tried, since the caller was gone by then.
   * `isNothing`: whether another caller's answer means that this caller's try would find nothing either.
   */
  async try(
    what: string,
    attempt: () => Promise<T>,
    isGone: () => boolean,
    isNothing: (answer: T) => boolean,
  ): Promise<T | undefined> {
    const came = performance.now()
    let own: Promise<T> | undefined
    const turn = (this.last.get(what) ?? Promise.resolve(undefined)).then(async (before) => {
      if (isGone()) return before
      if (before && before.began > came && (before.answer === undefined || isNothing(before.answer))) {
        own = before.outcome
        return before
      }
      const began = performance.now()
      const outcome = attempt()
      own = outcome
      return { began, outcome, answer: await outcome.catch(() => undefined) }
    })
    this.last.set(what, turn)
    await turn
    if (this.last.get(what) === turn) this.last.delete(what)
    return own
  }
}
