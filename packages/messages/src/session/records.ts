/** How a call or a result was recorded. */
export type Source = 'message' | 'event'

/** A call as one entry records it. */
export interface CallRecord {
  id: string | undefined
  name: string
  arguments: string
}

/** A result as one entry records it. */
export interface ResultRecord {
  id: string | undefined
  /** Whether the id can be no other than the call's. */
  is_certain: boolean
  name: string | undefined
  text: string
  is_failed: boolean
}

/** Where an entry stands. */
export interface Place {
  seq: number
  created_at: string
}
