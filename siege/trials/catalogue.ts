import { fullLogDevice, fullLogDisk } from './full_log.ts'
import { terminate } from './terminate.ts'
import type { Trial } from './trial.ts'

/** Every attack that does not come over connections. They come last, each with a start of its own. */
export const TRIALS: Trial[] = [fullLogDevice, fullLogDisk, terminate]
