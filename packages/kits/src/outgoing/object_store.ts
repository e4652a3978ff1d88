import { AnnalsError } from '../errors.js'

export class ObjectStoreAway extends AnnalsError {
  constructor(sentence: string, options?: { cause?: unknown }) {
    super('unavailable', sentence, options)
  }
}

/** The store answered with other bytes than it was given. To a caller it is away. */
export class WrongBytes extends ObjectStoreAway {
  constructor() {
    super('The store of attachments answers with other bytes than it was given. Retry shortly.')
  }
}

/** Keeps bytes outside the database, by key. A failure throws ObjectStoreAway. */
export interface ObjectStore {
  /** Loads what it works with, which would hold the event loop when somebody is waiting. */
  load(): Promise<unknown>
  /** Stores exactly so many bytes with this SHA-256; an error of the source is thrown, and nothing is stored. */
  put(key: string, source: AsyncIterable<Buffer>, length: number, sha256: string): Promise<void>
  /**
   * The bytes from a position to before another, which are at least one, of an object of so many bytes: as many as were
   * asked for, and no other part of it. @throws AnnalsError blob_not_found, WrongBytes
   */
  get(key: string, from: number, to: number, bytes: number): AsyncGenerator<Buffer>
  /** Deletes an object, if there is one, and makes sure that it has gone. */
  delete(key: string): Promise<void>
  /** A URL of the object as a file to save, valid for a minute. */
  sign(key: string, filename: string): Promise<string>
  /** @throws unless the bucket is there and may be used */
  check(): Promise<void>
}

export interface WithObjects {
  readonly objects?: ObjectStore | undefined
}
