export { Annals } from './annals.js'
export { AnnalsError } from './annals_error.js'
export type { List, Page } from './list.js'
export type {
  AnnalsOptions,
  AppendOptions,
  BatchOptions,
  CallOptions,
  CreateOptions,
  MessageOptions,
  WriteOptions,
} from './options.js'
export type { StreamOptions } from './reconnecting.js'
export type { HeldLease, LeaseOptions } from './runs.js'
export type { TailOptions } from './tail.js'
export type * from './types.js'
