import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../lab/random.ts'

/** The service that is written to, and a project's key. */
export interface Target {
  url: string
  token: string
}

const PAUSE_MS_MAX = 40
/** Large blobs in loops, and yet rounds of a minute on a slow disk. */
const HOSTILE_PAUSE_MS_MAX = 1_000
const SESSIONS_MAX = 60
const HOSTILE_BYTES = 8 * 1024 * 1024

/** Writers of one project that create and delete what refers to each other. */
export class Load {
  /** How often each kind of request was answered with success, and with anything else. */
  readonly done: Record<string, number> = {}
  readonly refused: Record<string, number> = {}
  private readonly sessions: string[] = []
  private readonly skills: string[] = []
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
    const draw = this.random.integer(1, 100)
    if (this.sessions.length > SESSIONS_MAX || draw <= 22) return this.deleteSession(target)
    if (draw <= 45) return this.newSession(target)
    if (draw <= 70) return this.attach(target)
    if (draw <= 80) return this.append(target, this.random.integer(1, 20))
    if (draw <= 82) return this.append(target, 1_000)
    if (draw <= 90) return this.newSkill(target)
    if (draw <= 96) return this.deleteSkill(target)
    return this.call(target, 'delete user', 'DELETE', `/user/user-${this.random.integer(1, 6)}`).then(
      () => {},
    )
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
    const blobs = this.random.chance(0.1) ? 20 : this.random.integer(1, 2)
    const bytes_max = blobs === 1 && this.random.chance(0.1) ? 600_000 : 2_000
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
    for (let n = 0; n < this.random.integer(0, 20); n++)
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
    const sha256 = await this.putBlob(target, HOSTILE_BYTES)
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
