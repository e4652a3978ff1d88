import type { CallOptions } from './options.js'
import type { Call, Transport } from './transport.js'
import type { CreatedKey, Key, Member, NewMember, NewPersonalToken } from './types.js'

/** The people of the project, for a client whose own key has the scope `admin`. */
export class Members {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** All members, in the order in which they were added. */
  async list(options?: CallOptions): Promise<Member[]> {
    const call: Call = { method: 'GET', path: ['members'] }
    return (await this.#transport.call<{ items: Member[] }>(call, options)).items
  }

  /** Makes the first person who signs in with this verified address a member. Sends no message. */
  invite(member: NewMember, options?: CallOptions): Promise<Member> {
    return this.#transport.call({ method: 'POST', path: ['members'], body: member, once: true }, options)
  }

  /** Changes a member's role, within 5 seconds. */
  change(member_id: string, role: NewMember['role'], options?: CallOptions): Promise<Member> {
    return this.#transport.call({ method: 'PATCH', path: ['members', member_id], body: { role } }, options)
  }

  /** Removes a member, whose sessions and personal tokens end. */
  async remove(member_id: string, options?: CallOptions): Promise<void> {
    const done_when = 'member_not_found'
    await this.#transport.call({ method: 'DELETE', path: ['members', member_id], done_when }, options)
  }
}

/** The personal tokens of the person whose token the client uses. `annals login` creates them. */
export class PersonalTokens {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Makes one, for a page of the console: personal tokens make no others. */
  create(token: NewPersonalToken, options?: CallOptions): Promise<CreatedKey> {
    const path = ['personal_tokens']
    return this.#transport.call({ method: 'POST', path, body: token, once: true }, options)
  }

  /** Those that are valid, oldest first, without their secrets. */
  async list(options?: CallOptions): Promise<Key[]> {
    const call: Call = { method: 'GET', path: ['personal_tokens'] }
    return (await this.#transport.call<{ items: Key[] }>(call, options)).items
  }

  /** Revokes one: every node refuses it within 5 seconds. */
  revoke(token_id: string, options?: CallOptions): Promise<Key> {
    return this.#transport.call({ method: 'DELETE', path: ['personal_tokens', token_id] }, options)
  }
}
