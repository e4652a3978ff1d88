/** Traits of a server that statements depend on. */
export interface ServerTraits {
  /**
   * A pooler such as PgBouncer is between us and PostgreSQL. A server tells at the start of a connection which of its
   * processes serves it; a pooler invents that, because it changes from one transaction to the next. So there is no
   * session state: no prepared statements, no settings, no LISTEN. A pooler in session mode looks the same and is
   * treated the same.
   */
  pooled: boolean
  /** Its tables are distributed over a Citus cluster. */
  distributed: boolean
}

/** Where a database is, and how it is reached. */
export type ConnectionTarget =
  | ({ connectionString: string } & Partial<ServerTraits>)
  | { host: string; port: number; database: string; user: string }
