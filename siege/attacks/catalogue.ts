import type { Attack } from '../attackers/attack.ts'
import { hostileNamesWithoutKey } from './hostile_names_without_key.ts'
import { sessionCopies } from './session_copies.ts'
import { slowBodies, slowBodiesWithoutKey } from './slow_bodies.ts'
import { stalledReaders } from './stalled_readers.ts'
import { unknownKeys } from './unknown_keys.ts'

/** Every attack by requests that there is, in the order in which they come. */
export const ATTACKS: Attack[] = [
  hostileNamesWithoutKey,
  slowBodies,
  slowBodiesWithoutKey,
  stalledReaders,
  unknownKeys,
  sessionCopies,
]
