import fc from 'fast-check'
import { IS_THOROUGH } from './thorough.ts'

/** A property that a busy machine is slow with is shown by as many runs as fit; a quiet one does all of them. */
const PROPERTY_MS_MAX = 10_000

if (!IS_THOROUGH)
  fc.configureGlobal({ interruptAfterTimeLimit: PROPERTY_MS_MAX, markInterruptAsFailure: false })
