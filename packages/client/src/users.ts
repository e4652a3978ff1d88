import { List, type Page } from './list.js'
import type { CallOptions } from './options.js'
import type { Transport } from './transport.js'
import type { ErasedUser, User, UserResources, UsersQuery } from './types.js'

/** The project's users, who come to be when they are first named. */
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

  /** How much the user has. */
  resources(identifier: string, options?: CallOptions): Promise<UserResources> {
    return this.#transport.call({ method: 'GET', path: ['user', identifier, 'resources'] }, options)
  }

  /**
   * Erases the user and everything of the user's, and gives what it removed. That is told only once, so a call
   * whose answer was lost is not made again: it throws, and when it is called anew, 404 says that the user is gone.
   */
  erase(identifier: string, options?: CallOptions): Promise<ErasedUser> {
    return this.#transport.call({ method: 'DELETE', path: ['user', identifier], once: true }, options)
  }
}
