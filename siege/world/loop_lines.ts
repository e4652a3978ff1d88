/** Shorter blocks are not recorded. */
export const NOTED_MS = 20
/** How often it is noted that the loop turns. */
export const TURNS_MS = 500

/** A block of the event loop. */
export interface Stood {
  /** How long it did not turn. */
  stood_ms: number
  /** Of this, how long its thread was on a processor, and how long it was ready to run and got none. */
  cpu_ms: number
  waited_ms: number
}

/** A line that the watch within the service writes. */
export type LoopLine =
  | ({ kind: 'stood' } & Stood)
  | {
      kind: 'turns'
      /** ms since 1970, and what the thread had of a processor by then. */
      at: number
      on_cpu_ms: number
    }
  | {
      kind: 'kept'
      /** The heap and what it holds outside of itself, after a full collection. */
      megabytes: number
    }
