import { AnnalsError } from '../errors.js'

/**
 * The database is unavailable: it cannot be reached, or the connection broke. `in_doubt` tells whether a write had
 * already been sent, outside a transaction or as its commit: nobody knows whether it took effect.
 */
export class DatabaseAway extends AnnalsError {
  constructor(
    readonly in_doubt: boolean,
    cause: unknown,
  ) {
    super('unavailable', undefined, { cause })
  }
}
