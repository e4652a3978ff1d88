import { FairSemaphore, type FairSemaphoreLimits } from '../fairness/fair_semaphore.js'
import type { Database, DatabasePool, Parameter, Queryable, Row } from './database.js'
import type { Statement } from './statement.js'

/** A database that does nothing for nobody: who works on it says for whom, and gets no more than that owner's share. */
export interface SharedDatabase {
  /** @param owner the project, or what the service itself does, such as `feed`, which has a share of its own */
  of(owner: string): Database
}

/** A pool whose connections are shared fairly between owners. */
export class SharedPool implements SharedDatabase {
  private readonly shares: FairSemaphore

  constructor(
    private readonly pool: DatabasePool,
    limits: FairSemaphoreLimits,
  ) {
    this.shares = new FairSemaphore(limits)
  }

  of(owner: string): Database {
    return new Share(this.pool, this.shares, owner)
  }

  /** As of a pool, and how many had to wait for a connection and how many were refused one, in all. */
  usage() {
    const { waiting, ...connections } = this.pool.usage()
    return { ...connections, waiting: waiting + this.shares.waiting, ...this.shares.counts }
  }

  close(): Promise<void> {
    return this.pool.close()
  }
}

class Share implements Database {
  constructor(
    private readonly pool: DatabasePool,
    private readonly shares: FairSemaphore,
    private readonly owner: string,
  ) {}

  get keepsPlans(): boolean {
    return this.pool.keepsPlans
  }

  query(statement: Statement, parameters: readonly Parameter[], onSending?: () => void): Promise<Row[]> {
    return this.shares.run(this.owner, () => this.pool.query(statement, parameters, onSending))
  }

  transaction<T>(work: (connection: Queryable) => Promise<T>): Promise<T> {
    return this.shares.run(this.owner, () => this.pool.transaction(work))
  }
}
