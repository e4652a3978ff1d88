export { AnnalsProvider, useAppend, useInbox, useSession, useTimeline } from './hooks.js'
export type { LiveState, PendingEntry } from './live_session.js'
