import { FairQueue, Quota } from '../../fairness/fair_queue.js'

/**
 * Answers per turn of the event loop. Writing one takes tens of microseconds, and a flush has hundreds: writing all
 * at once would delay everything else, above all the end of another flush, and leave the database idle.
 */
const ANSWERS_A_TURN = 16

interface Answer {
  give(value: unknown): void
  value: unknown
}

/**
 * Answers appends a few at a time, with projects taking turns, so that each delays the others by one turn at most.
 */
export class Answers {
  private readonly waiting = new FairQueue<Answer>()
  private readonly quota = new Quota(ANSWERS_A_TURN)
  private isGiving = false

  give<T>(project_id: string, give: (value: T) => void, value: T): void {
    this.waiting.add(project_id, { give, value } as Answer)
    if (this.isGiving) return
    this.isGiving = true
    setImmediate(this.giveSome)
  }

  private readonly giveSome = () => {
    for (let left = this.quota.turn(performance.now()); left > 0; left -= 1) {
      const answer = this.waiting.next()
      if (!answer) break
      answer.give(answer.value)
    }
    this.isGiving = this.waiting.size > 0
    if (this.isGiving) setImmediate(this.giveSome)
    else this.quota.rest()
  }
}
