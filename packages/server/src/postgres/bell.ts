/** Called with the sessions of a project that have grown. */
export type OnRing = (project_id: string, session_ids: string[]) => void

/** Tells other nodes on the same database that logs have grown, over LISTEN and NOTIFY. Only a hint. */
export interface Bell {
  /** Notifies the other nodes, if one of them has said that it listens. */
  ring(project_id: string, session_ids: ReadonlySet<string>): void
  /** Whether this node listens. */
  listen(wanted: boolean): void
  onRing(listener: OnRing): void
  /** Called when the other nodes know that this one listens: from now on they notify it. */
  onHeard(listener: () => void): void
  close(): Promise<void>
}

/** Does nothing, for targets without LISTEN: live tails then poll. */
export const SILENT_BELL: Bell = {
  ring: () => {},
  listen: () => {},
  onRing: () => {},
  onHeard: () => {},
  close: async () => {},
}
