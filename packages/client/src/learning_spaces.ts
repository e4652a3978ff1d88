import { List, type Page } from './list.js'
import type { CallOptions, CreateOptions } from './options.js'
import type { Transport } from './transport.js'
import type { LearningSpace, LearningSpacesQuery, NewLearningSpace } from './types.js'

/** Learning spaces, of the project or of one of its users. */
export class LearningSpaces {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  list(query: LearningSpacesQuery = {}, options?: CallOptions): List<LearningSpace> {
    return new List((cursor) =>
      this.#transport.call<Page<LearningSpace>>(
        { method: 'GET', path: ['learning_spaces'], query: cursor ? { ...query, cursor } : query },
        options,
      ),
    )
  }

  create(space: NewLearningSpace = {}, options?: CreateOptions): Promise<LearningSpace> {
    return this.#transport.call(
      { method: 'POST', path: ['learning_spaces'], body: space, keyed: true },
      options,
    )
  }

  get(learning_space_id: string, options?: CallOptions): Promise<LearningSpace> {
    return this.#transport.call({ method: 'GET', path: ['learning_spaces', learning_space_id] }, options)
  }

  /** Merges into the meta; null deletes a key. Returns the merged learning space. */
  merge(learning_space_id: string, meta: object, options?: CallOptions): Promise<LearningSpace> {
    return this.#transport.call(
      { method: 'PATCH', path: ['learning_spaces', learning_space_id], body: { meta } },
      options,
    )
  }

  async delete(learning_space_id: string, options?: CallOptions): Promise<void> {
    const done_when = 'learning_space_not_found'
    await this.#transport.call(
      { method: 'DELETE', path: ['learning_spaces', learning_space_id], done_when },
      options,
    )
  }
}
