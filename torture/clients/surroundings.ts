import type { Journal } from '../check/journal.ts'
import type { Model } from '../world/model.ts'
import type { ServiceNode } from '../world/node.ts'
import type { Traffic } from './http.ts'

/** A tenant: its id and the token that opens it. */
export interface Tenant {
  project_id: string
  token: string
}

/** A session that clients work on. */
export interface OpenSession {
  session_id: string
  tenant: Tenant
}

/** Where spaces learn, and what they were given. */
export interface Lessons {
  tenant: Tenant
  space_ids: string[]
  model: Model
  /**
   * Sessions that have all that they will ever have, the space that each was given to, and performance.now() when its
   * outcome was sent.
   */
  sessions: Array<{ session_id: string; space_id: string }>
}

/** Sessions in which entries are retracted, forked and given attachments, and what became of these. */
export interface Edits {
  tenant: Tenant
  sessions: OpenSession[]
  /** SHA-256 of bytes that were acknowledged. */
  blobs: Set<string>
  /** Sessions that expire while the run goes on. */
  expiring: number
}

export function newEdits(tenant: Tenant): Edits {
  return { tenant, sessions: [], blobs: new Set(), expiring: 0 }
}

/** Shared by all clients: the nodes, the tenants, the sessions to work on, and the journal. */
export interface Surroundings {
  nodes: ServiceNode[]
  tenants: Tenant[]
  /** Of these, the one whose sessions a consumer of changes follows. */
  consumed: Tenant
  /** What learning spaces are given. */
  lessons: Lessons
  edits: Edits
  /** Sessions that runners work on, and nobody else writes to. */
  runs: { tenant: Tenant; sessions: OpenSession[] }
  /** Sessions that were acknowledged, the newest last. */
  sessions: OpenSession[]
  journal: Journal
  traffic: Traffic
  /** False once clients should finish what they began. */
  isRunning: () => boolean
}
