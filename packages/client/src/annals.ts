import { Blobs } from './blobs.js'
import { Keys, RedactionRules } from './keys.js'
import { LearningSpaces } from './learning_spaces.js'
import { List } from './list.js'
import type { AnnalsOptions, CallOptions } from './options.js'
import { Members, PersonalTokens } from './people.js'
import { Runs } from './runs.js'
import { Sessions } from './sessions.js'
import { Skills } from './skills.js'
import { Tokens } from './tokens.js'
import { Transport } from './transport.js'
import type {
  FoundEntry,
  FoundPage,
  FoundSessions,
  OwnKey,
  RecallQuery,
  SearchQuery,
  ToolFailures,
  ToolPage,
  ToolQuery,
  ToolsQuery,
  Usage,
} from './types.js'
import { Users } from './users.js'
import { Webhooks } from './webhooks.js'

/** One project of one Annals service. Keeps no connection open, so there is nothing to close. */
export class Annals {
  readonly sessions: Sessions
  readonly learningSpaces: LearningSpaces
  readonly skills: Skills
  readonly users: Users
  readonly blobs: Blobs
  readonly webhooks: Webhooks
  readonly runs: Runs
  readonly tokens: Tokens
  readonly keys: Keys
  readonly members: Members
  readonly personalTokens: PersonalTokens
  readonly redaction: RedactionRules
  readonly #transport: Transport

  /** @throws TypeError if the url is invalid or the token is missing */
  constructor(options: AnnalsOptions) {
    this.#transport = new Transport(options)
    this.sessions = new Sessions(this.#transport)
    this.learningSpaces = new LearningSpaces(this.#transport)
    this.skills = new Skills(this.#transport)
    this.users = new Users(this.#transport)
    this.blobs = new Blobs(this.#transport)
    this.webhooks = new Webhooks(this.#transport)
    this.runs = new Runs(this.#transport)
    this.tokens = new Tokens(this.#transport)
    this.keys = new Keys(this.#transport)
    this.members = new Members(this.#transport)
    this.personalTokens = new PersonalTokens(this.#transport)
    this.redaction = new RedactionRules(this.#transport)
  }

  /** Resolves if the service answers and accepts the token. */
  async ping(options?: CallOptions): Promise<void> {
    await this.#transport.call({ method: 'GET', path: ['ping'] }, options)
  }

  /** The scopes of the token. */
  key(options?: CallOptions): Promise<OwnKey> {
    return this.#transport.call({ method: 'GET', path: ['key'] }, options)
  }

  /**
   * Entries of all sessions that match `q`, the newest first: `words`, `"words in this order"`, `-without`, `begin*`.
   * @throws AnnalsError search_off, until the project's operator switches it on
   */
  search(q: string, query: SearchQuery = {}, options?: CallOptions): List<FoundEntry, FoundPage> {
    return new List((cursor) =>
      this.#transport.call<FoundPage>(
        { method: 'GET', path: ['search'], query: { ...query, q, ...(cursor && { cursor }) } },
        options,
      ),
    )
  }

  /**
   * The sessions that answer a question in plain words best, each with its best entries and those around them. Not all
   * words need to be there, and other forms of them count.
   * @throws AnnalsError search_off, until the project's operator switches it on
   */
  recall(q: string, query: RecallQuery = {}, options?: CallOptions): Promise<FoundSessions> {
    return this.#transport.call(
      { method: 'GET', path: ['search'], query: { ...query, q, mode: 'recall', group: 'session' } },
      options,
    )
  }

  /** The calls of tools in all sessions, counted by tool, those that failed most first. */
  tools(query: ToolsQuery = {}, options?: CallOptions): Promise<ToolPage> {
    return this.#transport.call({ method: 'GET', path: ['tools'], query }, options)
  }

  /** One tool, with its failures by what their messages have in common. */
  tool(name: string, query: ToolQuery = {}, options?: CallOptions): Promise<ToolFailures> {
    return this.#transport.call({ method: 'GET', path: ['tools', name], query }, options)
  }

  /** The project's usage with its quotas, and what it stored by day. `days`: 30, up to today. */
  usage({ days, ...options }: CallOptions & { days?: number } = {}): Promise<Usage> {
    return this.#transport.call({ method: 'GET', path: ['usage'], query: { days } }, options)
  }
}
