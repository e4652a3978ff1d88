import type { Attack } from '../attackers/attack.ts'
import { bigPages } from './big_pages.ts'
import { connectionFlood } from './connection_flood.ts'
import { filteredLists } from './filtered_lists.ts'
import { filteredReads } from './filtered_reads.ts'
import { floodingReceivers } from './flooding_receivers.ts'
import { heavyBodies } from './heavy_bodies.ts'
import { hostileNames } from './hostile_names.ts'
import { hostileNamesWithoutKey } from './hostile_names_without_key.ts'
import { hostileValues } from './hostile_values.ts'
import { idleConnections } from './idle_connections.ts'
import { openPages } from './open_pages.ts'
import { pipelining } from './pipelining.ts'
import { redactionFlood } from './redaction_flood.ts'
import { resetsMidAnswer } from './resets_mid_answer.ts'
import { sessionCopies } from './session_copies.ts'
import { sessionDeletion } from './session_deletion.ts'
import { sessionFlood } from './session_flood.ts'
import { sessionTokens } from './session_tokens.ts'
import { signInGuesses } from './sign_in_guesses.ts'
import { slowBodies, slowBodiesWithoutKey } from './slow_bodies.ts'
import { slowHeaders } from './slow_headers.ts'
import { stalledDocuments } from './stalled_documents.ts'
import { stalledReaders } from './stalled_readers.ts'
import { tinyChunks } from './tiny_chunks.ts'
import { unknownKeys } from './unknown_keys.ts'
import { unreadTails } from './unread_tails.ts'
import { writeFlood } from './write_flood.ts'

/** Every attack by requests that there is, in the order in which they come: first those that need no key. */
export const ATTACKS: Attack[] = [
  hostileNamesWithoutKey,
  slowBodiesWithoutKey,
  slowHeaders,
  idleConnections,
  connectionFlood,
  openPages,
  stalledDocuments,
  signInGuesses,
  unknownKeys,
  hostileNames,
  hostileValues,
  heavyBodies,
  tinyChunks,
  slowBodies,
  stalledReaders,
  bigPages,
  resetsMidAnswer,
  pipelining,
  unreadTails,
  filteredReads,
  filteredLists,
  sessionCopies,
  sessionDeletion,
  sessionFlood,
  writeFlood,
  floodingReceivers,
  redactionFlood,
  sessionTokens,
]
