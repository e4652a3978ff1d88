import { List, type Page } from './list.js'
import type { CallOptions } from './options.js'
import type { Transport } from './transport.js'
import type { JsonObject, ListedSkill, Skill, SkillFile, SkillsQuery } from './types.js'

/** Skills in the Agent Skills format: those that people wrote, and those that learning spaces have learnt. */
export class Skills {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Uploads a zip with SKILL.md. The same skill again is not stored twice. */
  create(
    zip: Uint8Array<ArrayBuffer>,
    { user, meta, ...options }: CallOptions & { user?: string; meta?: JsonObject } = {},
  ): Promise<Skill> {
    const form = new FormData()
    if (user !== undefined) form.set('user', user)
    if (meta !== undefined) form.set('meta', this.#transport.stringify(meta))
    form.set('file', new Blob([zip]), 'skill.zip')
    return this.#transport.call({ method: 'POST', path: ['agent_skills'], form }, options)
  }

  list(query: SkillsQuery = {}, options?: CallOptions): List<ListedSkill> {
    return new List((cursor) =>
      this.#transport.call<Page<ListedSkill>>(
        { method: 'GET', path: ['agent_skills'], query: cursor ? { ...query, cursor } : query },
        options,
      ),
    )
  }

  get(skill_id: string, options?: CallOptions): Promise<Skill> {
    return this.#transport.call({ method: 'GET', path: ['agent_skills', skill_id] }, options)
  }

  /** A file of a skill: text as `content`; of any other file a `url` of its bytes, valid for five minutes. */
  file(skill_id: string, file_path: string, options?: CallOptions): Promise<SkillFile> {
    const path = ['agent_skills', skill_id, 'file']
    return this.#transport.call({ method: 'GET', path, query: { file_path } }, options)
  }

  /** All files of a skill as a zip. */
  download(skill_id: string, options?: CallOptions): Promise<Uint8Array<ArrayBuffer>> {
    const path = ['agent_skills', skill_id, 'download_zip']
    return this.#transport.call({ method: 'GET', path, range: undefined }, options)
  }

  async delete(skill_id: string, options?: CallOptions): Promise<void> {
    const path = ['agent_skills', skill_id]
    await this.#transport.call({ method: 'DELETE', path, done_when: 'skill_not_found' }, options)
  }
}
