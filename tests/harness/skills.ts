import { crc32, deflateRawSync } from 'node:zlib'

/** An entry of a zip as a test wants it, true or not. */
export interface ZipEntry {
  path: string
  content: string | Buffer
  /** What the entry says of itself instead of the truth. */
  declared_bytes?: number
  declared_crc?: number
  /** The mode of the file on a Unix, such as 0o120777 for a link. */
  mode?: number
  flags?: number
  method?: number
  /** What the directory has of it besides. */
  extra?: Buffer
  comment?: string
}

/** A zip written by hand, so that it can say what no library would write. */
export function zipOf(entries: readonly ZipEntry[]): Buffer {
  const locals: Buffer[] = []
  const central: Buffer[] = []
  let offset = 0
  for (const entry of entries) {
    const { path, content, declared_bytes, declared_crc, mode = 0o100644, flags = 0x800, method = 8 } = entry
    const { extra = Buffer.alloc(0), comment = '' } = entry
    const bytes = Buffer.from(content)
    const data = method === 8 ? deflateRawSync(bytes) : bytes
    const name = Buffer.from(path)
    const common = Buffer.alloc(26)
    common.writeUInt16LE(20, 0)
    common.writeUInt16LE(flags, 2)
    common.writeUInt16LE(method, 4)
    common.writeUInt32LE(declared_crc ?? crc32(bytes), 10)
    common.writeUInt32LE(data.length, 14)
    common.writeUInt32LE(declared_bytes ?? bytes.length, 18)
    common.writeUInt16LE(name.length, 22)
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, name, data])
    const lengths = Buffer.from(common)
    lengths.writeUInt16LE(extra.length, 24)
    const behind = Buffer.alloc(14)
    behind.writeUInt16LE(Buffer.byteLength(comment), 0)
    behind.writeUInt32LE((mode << 16) >>> 0, 6)
    behind.writeUInt32LE(offset, 10)
    const head = [Buffer.from('PK\x01\x02'), Buffer.from([20, 3]), lengths, behind]
    central.push(Buffer.concat([...head, name, extra, Buffer.from(comment)]))
    locals.push(local)
    offset += local.length
  }
  const directory = Buffer.concat(central)
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 0, 'latin1')
  end.writeUInt16LE(entries.length, 8)
  end.writeUInt16LE(entries.length, 10)
  end.writeUInt32LE(directory.length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...locals, directory, end])
}

export function skillMd(name: string, more = '', description = `What ${name} is for.`): string {
  return `---\nname: ${name}\ndescription: ${description}\n${more}---\n\n# ${name}\n\nDo it like this.\n`
}

/** The zip of a skill with SKILL.md and further files, by their paths. */
export function skillZip(name: string, files: Record<string, string | Buffer> = {}): Buffer {
  const entries = Object.entries({ 'SKILL.md': skillMd(name), ...files })
  return zipOf(entries.map(([path, content]) => ({ path, content })))
}

/** Uploads a zip, with fields of the form beside it. */
export function uploadSkill(
  url: string,
  token: string,
  zip: Buffer,
  fields: Record<string, string> = {},
): Promise<Response> {
  const body = new FormData()
  for (const [name, text] of Object.entries(fields)) body.set(name, text)
  body.set('file', new Blob([zip as Uint8Array<ArrayBuffer>]), 'skill.zip')
  return fetch(`${url}/api/v1/agent_skills`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}` },
    body,
  })
}
