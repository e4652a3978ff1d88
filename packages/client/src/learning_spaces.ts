import { List, type Page } from './list.js'
import type { CallOptions, CreateOptions } from './options.js'
import type { Transport } from './transport.js'
import type {
  Feedback,
  LearningSpace,
  LearningSpacesQuery,
  NewLearningSpace,
  NewStatement,
  Skill,
  SkillVersion,
  SpaceContext,
  SpaceContextQuery,
  SpacePolicy,
  SpaceSession,
  SpaceSkill,
  SpaceUsage,
  Statement,
  StatementChange,
  StatementsQuery,
} from './types.js'

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

  /** Has a space learn from a session, also from what is appended later. `now` is for a model: rules never wait. */
  learn(
    learning_space_id: string,
    session_id: string,
    { now, ...options }: CallOptions & { now?: boolean } = {},
  ): Promise<SpaceSession> {
    const body = { session_id, ...(now && { now }) }
    return this.#of('POST', learning_space_id, ['learn'], { body }, options)
  }

  /** All sessions that a space learns from. */
  sessions(learning_space_id: string, options?: CallOptions): Promise<SpaceSession[]> {
    return this.#of('GET', learning_space_id, ['sessions'], {}, options)
  }

  /** How far a space is with a session. */
  session(learning_space_id: string, session_id: string, options?: CallOptions): Promise<SpaceSession> {
    return this.#of('GET', learning_space_id, ['sessions', session_id], {}, options)
  }

  policy(learning_space_id: string, options?: CallOptions): Promise<SpacePolicy> {
    return this.#of('GET', learning_space_id, ['policy'], {}, options)
  }

  setPolicy(learning_space_id: string, policy: SpacePolicy, options?: CallOptions): Promise<SpacePolicy> {
    return this.#of('PUT', learning_space_id, ['policy'], { body: policy }, options)
  }

  /** A space's use of its model: tokens of its budget, and calls by day. `days`: 30, to today. */
  usage(
    learning_space_id: string,
    { days, ...options }: CallOptions & { days?: number } = {},
  ): Promise<SpaceUsage> {
    return this.#of('GET', learning_space_id, ['usage'], { query: { days } }, options)
  }

  /** Written skills that a space includes, and those that it has learnt. */
  skills(learning_space_id: string, options?: CallOptions): Promise<Skill[]> {
    return this.#of('GET', learning_space_id, ['skills'], {}, options)
  }

  /** Includes a written skill in a space. */
  includeSkill(learning_space_id: string, skill_id: string, options?: CallOptions): Promise<SpaceSkill> {
    return this.#of('POST', learning_space_id, ['skills'], { body: { skill_id } }, options)
  }

  /** Takes a written skill out of a space. */
  async excludeSkill(learning_space_id: string, skill_id: string, options?: CallOptions): Promise<void> {
    await this.#of('DELETE', learning_space_id, ['skills', skill_id], {}, options)
  }

  /** The statements of a space, each with the entries that it cites. */
  statements(learning_space_id: string, query: StatementsQuery = {}, options?: CallOptions): List<Statement> {
    return new List((cursor) =>
      this.#of(
        'GET',
        learning_space_id,
        ['statements'],
        { query: cursor ? { ...query, cursor } : query },
        options,
      ),
    )
  }

  /** Adds a statement of one's own, which is active at once. */
  addStatement(
    learning_space_id: string,
    statement: NewStatement,
    options?: CallOptions,
  ): Promise<Statement> {
    return this.#of('POST', learning_space_id, ['statements'], { body: statement }, options)
  }

  /** Approves, rejects or edits a statement. */
  changeStatement(statement_id: string, change: StatementChange, options?: CallOptions): Promise<Statement> {
    return this.#transport.call(
      { method: 'PATCH', path: ['statements', statement_id], body: change },
      options,
    )
  }

  /** The active statements that fit the words of a task, rendered for a prompt. */
  context(
    learning_space_id: string,
    query: SpaceContextQuery = {},
    options?: CallOptions,
  ): Promise<SpaceContext> {
    return this.#of('GET', learning_space_id, ['context'], { query }, options)
  }

  /** Says whether statements helped a session. */
  async feedback(learning_space_id: string, feedback: Feedback, options?: CallOptions): Promise<void> {
    await this.#of('POST', learning_space_id, ['feedback'], { body: feedback }, options)
  }

  /** The history of a space's skills, newest first. */
  history(learning_space_id: string, options?: CallOptions): List<SkillVersion> {
    return new List((cursor) =>
      this.#of('GET', learning_space_id, ['history'], { query: cursor ? { cursor } : {} }, options),
    )
  }

  #of<Answer>(
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    learning_space_id: string,
    path: string[],
    request: { query?: object; body?: object },
    options: CallOptions | undefined,
  ): Promise<Answer> {
    const whole = ['learning_spaces', learning_space_id, ...path]
    return this.#transport.call<Answer>({ method, path: whole, ...request }, options)
  }
}
