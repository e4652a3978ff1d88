/** A try for something: when it began, its outcome, and whether it found what it was for. */
interface Try<T> {
  began: number
  outcome: Promise<T>
  isFound: boolean
}

/**
 * Tries of many callers who wait for the same, of which each thing that comes is for one. They try one after another, and
 * a try that found nothing, or failed, is also that of all who came before it began. So what comes costs two tries or
 * three, and not one for each who waits.
 */
export class SharedTries<T> {
  private readonly last = new Map<string, Promise<Try<T> | undefined>>()

  constructor(private readonly isFound: (outcome: T) => boolean) {}

  /** The outcome of a try that began after this call; undefined: nothing was tried, since the caller was gone by then. */
  async try(what: string, attempt: () => Promise<T>, isGone: () => boolean): Promise<T | undefined> {
    const came = performance.now()
    let own: Promise<T> | undefined
    const turn = (this.last.get(what) ?? Promise.resolve(undefined)).then(async (before) => {
      if (isGone()) return before
      if (before && !before.isFound && before.began > came) {
        own = before.outcome
        return before
      }
      const began = performance.now()
      own = attempt()
      const isFound = await own.then(this.isFound, () => false)
      return { began, outcome: own, isFound }
    })
    this.last.set(what, turn)
    await turn
    if (this.last.get(what) === turn) this.last.delete(what)
    return own
  }
}
