import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../lab/random.ts'

/** The service that is written to, and a project's key. */
export interface Target {
  url: string
  token: string
}

/** Pauses leave the processor to the rounds: what finds faults is many rounds beside many kinds of writes. */
const PAUSE_MS_MAX = 400
const HOSTILE_PAUSE_MS_MAX = 1_500
const SESSIONS_MAX = 40
const SPACES_MAX = 5
/** Mostly of a few chunks, and now and then of as many as blobs may have. */
const HOSTILE_BYTES = 1_000_000
const HOSTILE_BYTES_MAX = 8 * 1024 * 1024

/** Writers of one project that create and delete what refers to each other. */
export class Load {
  /** How often each kind of request was answered with success, and with anything else. */
  readonly done: Record<string, number> = {}
  readonly refused: Record<string, number> = {}
  private readonly sessions: string[] = []
  private readonly skills: string[] = []
  private readonly spaces: string[] = []
  private isRunning = true
  private readonly writers: Promise<void>[] = []

  private readonly random: Random

  constructor(random: Random) {
    this.random = random
  }

  /** @param hostile sends, references and deletes large blobs, and nothing else */
  start(target: Target, writers: number, hostile: boolean): void {
    for (let n = 0; n < writers; n++) this.writers.push(this.write(target, hostile))
  }

  /** Begins anew with what is referred to: the project it was in is gone. */
  forget(): void {
    for (const list of [this.sessions, this.skills, this.spaces]) list.length = 0
  }

  async stop(): Promise<void> {
    this.isRunning = false
    await Promise.all(this.writers)
  }

  private async write(target: Target, hostile: boolean): Promise<void> {
    while (this.isRunning) {
      await sleep(this.random.integer(0, hostile ? HOSTILE_PAUSE_MS_MAX : PAUSE_MS_MAX))
      // The service may be busy; what counts is what it stored.
      await (hostile ? this.sendAndDelete(target) : this.anything(target)).catch(() =>
        this.count('no answer', false),
      )
    }
  }

  private anything(target: Target): Promise<void> {
    const draw = this.random.integer(1, 150)
    if (this.sessions.length > SESSIONS_MAX || draw <= 22) return this.deleteSession(target)
    if (draw <= 45) return this.newSession(target)
    if (draw <= 65) return this.attach(target)
    if (draw <= 75) return this.append(target, this.random.integer(1, 20))
    if (draw <= 76) return this.append(target, 1_000)
    if (draw <= 84) return this.newSkill(target)
    if (draw <= 92) return this.deleteSkill(target)
    if (draw <= 95) return this.deleteUser(target)
    if (draw <= 107) return this.run(target)
    if (draw <= 117) return this.ask(target)
    if (draw <= 122) return this.fork(target)
    if (draw <= 130) return this.converse(target)
    if (draw <= 136) return this.retract(target)
    return this.learn(target)
  }

  private async deleteUser(target: Target): Promise<void> {
    await this.call(target, 'delete user', 'DELETE', `/user/user-${this.random.integer(1, 6)}`)
  }

  /** Input, sometimes with an attachment, of which a part is applied and a part withdrawn. */
  private async run(target: Target): Promise<void> {
    const id = this.pick()
    const inputs: string[] = []
    for (let n = 0; n < this.random.integer(1, 4); n++) {
      const sha256 = this.random.chance(0.3) ? await this.putBlob(target, 500) : undefined
      const data = sha256 ? { file: { annals_blob: sha256, media_type: 'image/png' } } : { n }
      const input = { id: randomUUID(), mode: 'queue', kind: 'event', type: 'task', data }
      if (await this.call(target, 'input', 'POST', `/session/${id}/inbox`, input)) inputs.push(input.id)
    }
    const lease = await this.call(target, 'lease', 'POST', `/session/${id}/lease`, {
      owner: `runner-${this.random.integer(1, 3)}`,
      ttl_ms: 1_000,
    })
    if (!lease || inputs.length === 0) return
    const apply = inputs.filter(() => this.random.chance(0.6))
    if (apply.length > 0) await this.call(target, 'apply', 'POST', `/session/${id}/entries`, { apply })
    if (this.random.chance(0.5))
      await this.call(target, 'withdraw', 'DELETE', `/session/${id}/inbox/${inputs[0]}`)
  }

  private async ask(target: Target): Promise<void> {
    const asked = { kind: 'question', id: randomUUID(), text: 'Which one?' }
    if (!(await this.call(target, 'request', 'POST', `/session/${this.pick()}/requests`, asked))) return
    if (this.random.chance(0.5)) return
    const answer = { decision: 'answer', answer: { one: true } }
    await this.call(target, 'resolve', 'POST', `/requests/${asked.id}/resolve`, answer)
  }

  private async fork(target: Target): Promise<void> {
    const copy = this.random.chance(0.5) ? {} : { user: `user-${this.random.integer(1, 6)}` }
    const made = await this.call(target, 'fork', 'POST', `/session/${this.pick()}/copy`, copy)
    if (made) this.sessions.push((made as { new_session_id: string }).new_session_id)
  }

  /** Messages, of which one replaces those before as a summary. */
  private async converse(target: Target): Promise<void> {
    const id = this.pick()
    for (const role of ['user', 'assistant', 'user', 'assistant']) {
      const blob = { role, content: `Said by the ${role}.` }
      await this.call(target, 'message', 'POST', `/session/${id}/messages`, { blob })
    }
    const summary = { blob: { role: 'user', content: 'What was said before.' } }
    await this.call(target, 'compaction', 'POST', `/session/${id}/compactions`, { to_seq: 2, summary })
  }

  private async retract(target: Target): Promise<void> {
    const body = { last: this.random.integer(1, 5) }
    await this.call(target, 'retraction', 'POST', `/session/${this.pick()}/retractions`, body)
  }

  /** Spaces that learn by rules from the same sessions, and their statements. */
  private async learn(target: Target): Promise<void> {
    const draw = this.random.integer(1, 4)
    if (this.spaces.length > SPACES_MAX || draw === 1) {
      const gone = this.spaces.shift()
      if (gone) await this.call(target, 'delete space', 'DELETE', `/learning_spaces/${gone}`)
      return
    }
    if (draw === 2 || this.spaces.length === 0) {
      const body = this.random.chance(0.5) ? {} : { user: `user-${this.random.integer(1, 6)}` }
      const made = await this.call(target, 'space', 'POST', '/learning_spaces', body)
      if (made) this.spaces.push((made as { id: string }).id)
      return
    }
    const space = `/learning_spaces/${this.random.pick(this.spaces)}`
    if (draw === 3) await this.failTwice(target, space)
    else await this.call(target, 'statement', 'POST', `${space}/statements`, { text: 'Ask before you pay.' })
  }

  /** What rules learn from: a tool that fails in the same way in two sessions. */
  private async failTwice(target: Target, space: string): Promise<void> {
    for (const session_id of [this.pick(), this.pick()]) {
      const entries = [
        {
          role: 'assistant',
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'pay', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'c', content: 'Error: payment amount does not add up' },
      ].map((blob) => ({ kind: 'message', blob }))
      await this.call(target, 'failure', 'POST', `/session/${session_id}/entries`, { entries })
      await this.call(target, 'learn', 'POST', `${space}/learn`, { session_id })
    }
  }

  private async newSession(target: Target): Promise<void> {
    const user = this.random.chance(0.6) ? { user: `user-${this.random.integer(1, 6)}` } : {}
    const parent = this.sessions.length > 0 && this.random.chance(0.5) ? { parent: this.pick() } : {}
    const made = await this.call(target, 'session', 'POST', '/session', { ...user, ...parent })
    if (made) this.sessions.push((made as { id: string }).id)
  }

  private async attach(target: Target): Promise<void> {
    const id = this.pick()
    const hashes: string[] = []
    // More than one transaction of a deletion releases; or more than one chunk each, but seldom, so that rounds stay short.
    const blobs = this.random.chance(0.02) ? 20 : this.random.integer(1, 2)
    const bytes_max = blobs === 1 && this.random.chance(0.05) ? 600_000 : 2_000
    for (let n = 0; n < blobs; n++) {
      const sha256 = await this.putBlob(target, this.random.integer(1, bytes_max))
      if (sha256) hashes.push(sha256)
    }
    const files = hashes.map((sha256) => ({ annals_blob: sha256, media_type: 'image/png' }))
    await this.call(target, 'attachment', 'POST', `/session/${id}/events`, { type: 'note', data: { files } })
  }

  private async append(target: Target, many: number): Promise<void> {
    const entries = Array.from({ length: many }, (_, n) => ({ kind: 'event', type: 'tick', data: { n } }))
    await this.call(target, 'append', 'POST', `/session/${this.pick()}/entries`, { entries })
  }

  private async deleteSession(target: Target): Promise<void> {
    if (this.sessions.length === 0) return
    const [id] = this.sessions.splice(this.random.integer(0, this.sessions.length - 1), 1)
    await this.call(target, 'delete session', 'DELETE', `/session/${id}`)
  }

  private async newSkill(target: Target): Promise<void> {
    const name = `skill-${randomUUID().slice(0, 8)}`
    const files: Record<string, string> = {
      'SKILL.md': `---\nname: ${name}\ndescription: Of the drill.\n---\n`,
    }
    for (let n = 0; n < this.random.integer(0, 6); n++)
      files[`file-${n}.md`] = randomBytes(50).toString('hex')
    const body = new FormData()
    body.set('file', new Blob([zipOf(files) as Uint8Array<ArrayBuffer>]), 'skill.zip')
    if (this.random.chance(0.5)) body.set('user', `user-${this.random.integer(1, 6)}`)
    const made = await this.call(target, 'skill', 'POST', '/agent_skills', body)
    if (made) this.skills.push((made as { id: string }).id)
  }

  private async deleteSkill(target: Target): Promise<void> {
    const id = this.skills.shift()
    if (id) await this.call(target, 'delete skill', 'DELETE', `/agent_skills/${id}`)
  }

  private async sendAndDelete(target: Target): Promise<void> {
    const made = await this.call(target, 'session', 'POST', '/session', {})
    const sha256 = await this.putBlob(
      target,
      this.random.chance(0.05) ? HOSTILE_BYTES_MAX : this.random.integer(1, HOSTILE_BYTES),
    )
    if (!made || !sha256) return
    const { id } = made as { id: string }
    const data = { file: { annals_blob: sha256, media_type: 'image/png' } }
    await this.call(target, 'attachment', 'POST', `/session/${id}/events`, { type: 'note', data })
    await this.call(target, 'delete session', 'DELETE', `/session/${id}`)
  }

  private async putBlob(target: Target, length: number): Promise<string | undefined> {
    const bytes = randomBytes(length)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    return (await this.call(target, 'blob', 'PUT', `/blobs/${sha256}`, bytes)) === undefined
      ? undefined
      : sha256
  }

  private pick(): string {
    return this.sessions.length > 0 ? this.random.pick(this.sessions) : randomUUID()
  }

  /** What was answered, or undefined if it was refused: what it names may be gone. */
  private async call(
    { url, token }: Target,
    what: string,
    method: string,
    path: string,
    body?: object,
  ): Promise<unknown> {
    const raw = body instanceof FormData || Buffer.isBuffer(body)
    const type = raw ? (Buffer.isBuffer(body) ? 'application/octet-stream' : undefined) : 'application/json'
    const response = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body && type && { 'content-type': type }) },
      ...(body && { body: (raw ? body : JSON.stringify(body)) as RequestInit['body'] & {} }),
    })
    const answer = (await response.json()) as { data?: unknown }
    this.count(what, response.ok)
    return response.ok ? (answer.data ?? null) : undefined
  }

  private count(what: string, isDone: boolean): void {
    const counts = isDone ? this.done : this.refused
    counts[what] = (counts[what] ?? 0) + 1
  }
}

const CRC = Array.from({ length: 256 }, (_, n) => {
  let crc = n
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  return crc
})

/** A zip whose files are stored as they are. */
function zipOf(files: Readonly<Record<string, string>>): Buffer {
  const parts: Buffer[] = []
  const index: Buffer[] = []
  let at = 0
  for (const [path, text] of Object.entries(files)) {
    const [name, data] = [Buffer.from(path), Buffer.from(text)]
    const crc =
      (data.reduce((sum, byte) => (sum >>> 8) ^ CRC[(sum ^ byte) & 0xff]!, 0xffffffff) ^ 0xffffffff) >>> 0
    const head = Buffer.alloc(26)
    head.writeUInt16LE(20, 0)
    head.writeUInt32LE(crc, 10)
    head.writeUInt32LE(data.length, 14)
    head.writeUInt32LE(data.length, 18)
    head.writeUInt16LE(name.length, 22)
    const offset = Buffer.alloc(14)
    offset.writeUInt32LE(at, 10)
    parts.push(Buffer.from('PK\x03\x04'), head, name, data)
    index.push(Buffer.from('PK\x01\x02\x14\x00'), head, offset, name)
    at += 30 + name.length + data.length
  }
  const bytes = Buffer.concat(index)
  const end = Buffer.alloc(18)
  for (const place of [4, 6]) end.writeUInt16LE(Object.keys(files).length, place)
  end.writeUInt32LE(bytes.length, 8)
  end.writeUInt32LE(at, 12)
  return Buffer.concat([...parts, bytes, Buffer.from('PK\x05\x06'), end])
}
