/** Told which sessions of a project have grown. */
export type OnRing = (project_id: string, session_ids: string[]) => void

/** Tells other nodes on the same database that logs have grown, over LISTEN and NOTIFY. Only ever a hint. */
export interface Bell {
  /** Tells the other nodes, if one of them has said that it listens. */
  ring(project_id: string, session_ids: ReadonlySet<string>): void
  /** Whether this node wants to hear. */
  listen(wanted: boolean): void
  onRing(listener: OnRing): void
  /** Called when the other nodes have heard that this one listens: from now on they ring. */
  onHeard(listener: () => void): void
  close(): Promise<void>
}

/** A bell that nobody hears, where LISTEN is not to be had: live tails then look for themselves. */
export const SILENT_BELL: Bell = {
  ring: () => {},
  listen: () => {},
  onRing: () => {},
  onHeard: () => {},
  close: async () => {},
}
