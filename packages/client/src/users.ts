import { List, type Page } from './list.js'
import type { CallOptions } from './options.js'
import type { Transport } from './transport.js'
import type { ErasedUser, User, UserResources, UsersQuery } from './types.js'

/** Without a limit, the API sends all users as one page; walking a list should not need the memory for that. */
const USER_PAGE_LIMIT = 200

/** The project's users. A user is created when first named. */
export class Users {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  list(query: UsersQuery = {}, options?: CallOptions): List<User> {
    const paged = { limit: USER_PAGE_LIMIT, ...query }
    return new List((cursor) =>
      this.#transport.call<Page<User>>(
        { method: 'GET', path: ['user', 'ls'], query: cursor ? { ...paged, cursor } : paged },
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
