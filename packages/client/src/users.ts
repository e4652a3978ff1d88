import { List, type Page } from './list.js'
import type { CallOptions } from './options.js'
import type { Transport } from './transport.js'
import type { ErasedUser, User, UserResources, UsersQuery } from './types.js'

/** The project's users. A user is created when first named. */
export class Users {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  list(query: UsersQuery = {}, options?: CallOptions): List<User> {
    return new List((cursor) =>
      this.#transport.call<Page<User>>(
        { method: 'GET', path: ['user', 'ls'], query: cursor ? { ...query, cursor } : query },
        options,
      ),
    )
  }

  /** Counts what the user has. */
  resources(identifier: string, options?: CallOptions): Promise<UserResources> {
    return this.#transport.call({ method: 'GET', path: ['user', identifier, 'resources'] }, options)
  }

  /**
   * Erases the user with all its data, and returns the counts of what was removed. These are returned only once, so a
   * call whose answer was lost is not retried: it throws, and if it is called again, 404 means that the user is gone.
   */
  erase(identifier: string, options?: CallOptions): Promise<ErasedUser> {
    return this.#transport.call({ method: 'DELETE', path: ['user', identifier], once: true }, options)
  }
}
