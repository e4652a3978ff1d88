import type { Place } from './places.js'

interface InFlight {
  checkpoint_id: string
  before: Promise<unknown>
  all: Promise<unknown>
}

/**
 * LangGraph goes on while it stores. What belongs to one checkpoint is appended after what belonged to the one before, so
 * that a thread reads in the order in which it happened.
 */
export class CheckpointOrder {
  /** Of each thread, what is in flight for its newest checkpoint, and what that waits for. */
  private readonly threads = new Map<string, InFlight>()

  /** Appends what is being made when its turn comes, whatever became of what came before. */
  async append<Made>(
    { thread_id, checkpoint_id }: Place,
    made: Promise<Made>,
    append: (made: Made) => Promise<void>,
  ): Promise<void> {
    const last = this.threads.get(thread_id)
    const is_same = last?.checkpoint_id === checkpoint_id
    const before = is_same ? last.before : (last?.all ?? Promise.resolve())
    const appended = Promise.all([made, before]).then(([entries]) => append(entries))
    const all = Promise.allSettled([is_same && last.all, appended]).then(() => {
      if (this.threads.get(thread_id) === current) this.threads.delete(thread_id)
    })
    const current = { checkpoint_id, before, all }
    this.threads.set(thread_id, current)
    return appended
  }
}
