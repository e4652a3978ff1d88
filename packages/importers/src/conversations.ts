import type { MessageFormat } from '@annals/messages'
import { isJsonObject } from '@annals/messages/json'
import { digestOf } from './ids.js'
import { isEmpty, objectIn, without } from './json.js'
import { timeIn } from './other_messages.js'
import type { Output } from './output.js'
import type { JsonObject } from './records.js'

/** What names a conversation, in the order in which it counts. */
const IDS = ['id', 'conversation_id', 'session_id', 'thread_id', 'custom_id', 'request_id']
/** What is a config; anything else of a conversation is kept as an event. */
const CONFIGS = ['model', 'title', 'name', 'metadata', 'temperature']
const RATES = ['reward', 'score', 'success', 'passed', 'outcome']

/** Stores conversations that are lists of messages, each with what else is known of it. */
export class Conversations {
  private count = 0

  constructor(
    private readonly out: Output,
    private readonly format: MessageFormat,
  ) {}

  /** `about` is everything that is known of the conversation apart from its messages. */
  store(about: JsonObject, messages: readonly unknown[]): void {
    const { user, configs, ...others } = about
    const key = this.keyOf(about, messages)
    const rest: JsonObject = { ...others, ...(typeof user !== 'string' && { user }) }
    if (!isJsonObject(configs)) rest.configs = configs
    this.out.session(key, {
      user: user ?? rest.user_id,
      configs: { ...Object.fromEntries(CONFIGS.map((name) => [name, rest[name]])), ...objectIn(configs) },
      changed_at: rest.updated_at ?? rest.created,
    })
    const at = rest.created_at ?? rest.created ?? rest.timestamp ?? rest.session_start
    for (const [index, message] of messages.entries()) {
      const said_at = isJsonObject(message) ? timeIn(message) : undefined
      this.out.message(key, this.format, message, { native: index, at: said_at ?? at })
    }
    const unmapped = without(rest, ...CONFIGS, ...RATES)
    if (!isEmpty(unmapped)) this.out.raw(key, 'run', unmapped, { native: 'run', at, noise: true })
    const all: JsonObject = { ...objectIn(configs), ...rest }
    const rated = RATES.filter((name) => all[name] != null)
    if (rated.length > 0)
      this.out.outcome(key, Object.fromEntries(rated.map((name) => [name, all[name]])), { at })
    this.out.end(key)
  }

  /** What names the conversation. One without a name is named after its place and what begins it. */
  private keyOf(about: JsonObject, messages: readonly unknown[]): string {
    this.count += 1
    const named = IDS.find((id) => typeof about[id] === 'string' && about[id] !== '')
    if (named === undefined) return `${this.count} ${digestOf([about, messages.slice(0, 3)])}`
    // Every batch may have a `request-1`.
    return named === 'custom_id'
      ? `${about.custom_id} ${digestOf(messages.slice(0, 3))}`
      : String(about[named])
  }
}
