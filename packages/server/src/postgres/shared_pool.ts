import { FairSemaphore, type FairSemaphoreLimits } from '../fairness/fair_queue.js'
import type { Database, DatabasePool, Parameter, Queryable, Row } from './database.js'
import type { Statement } from './statement.js'

/** A database whose users name an owner, and get no more than that owner's share. */
export interface SharedDatabase {
  /** @param owner the project, or a part of the service, such as `feed`, which has its own share */
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

  /**
   * A pool's figures, and how many requests had to wait for a connection, and how many were refused one, in total.
   */
  usage() {
    const { waiting, ...connections } = this.pool.usage()
    return { ...connections, waiting: waiting + this.shares.waiting, ...this.shares.counts }
  }

  /** The machine that has a project, or the project itself as long as that is not known. */
  machineOf(project_id: string): string {
    return this.pool.machineOf?.(project_id) ?? project_id
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

  get objects() {
    return this.pool.objects
  }

  query(statement: Statement, parameters: readonly Parameter[], onSending?: () => void): Promise<Row[]> {
    return this.shares.run(this.owner, () => this.pool.query(statement, parameters, onSending))
  }

  transaction<T>(work: (connection: Queryable) => Promise<T>): Promise<T> {
    return this.shares.run(this.owner, () => this.pool.transaction(work))
  }
}
