import { typeOfBytes } from '@annals/messages'
import { objectIn, objectsIn } from './json.js'
import type { Beside } from './reading/beside.js'
import type { ImportRecord, JsonObject } from './records.js'

/** Where an export says that a picture is, in place of an address: `file-service://file-abc`, `sediment://file_0a1b`. */
const POINTER = /^(?:file-service|sediment):\/\/(?:[^/]*\/)*?(file[-_][A-Za-z0-9]+)/

/** Pictures that models take. */
const TAKEN = /^image\/(png|jpeg|gif|webp)$/

/**
 * Puts pictures into the messages that refer to them, one message at a time. A picture that is not there leaves a note of
 * its name.
 */
export class Pictures {
  private names: Map<string, string> | undefined
  read = 0
  missing = 0

  constructor(private readonly beside: Beside | undefined) {}

  async fill(record: ImportRecord): Promise<ImportRecord> {
    if (record.kind !== 'entry' || record.entry.kind !== 'message') return record
    const { entry } = record
    const { content } = entry.blob
    if (!objectsIn(content).some((part) => pointerIn(part) !== undefined)) return record
    const parts: JsonObject[] = []
    for (const part of objectsIn(content)) parts.push(await this.part(part))
    return { ...record, entry: { ...entry, blob: { ...entry.blob, content: parts } } }
  }

  private async part(part: JsonObject): Promise<JsonObject> {
    const pointer = pointerIn(part)
    if (pointer === undefined) return part
    const url = await this.dataUrl(pointer)
    if (url === undefined) {
      this.missing += 1
      return { type: 'text', text: `[picture ${pointer}]` }
    }
    this.read += 1
    return { type: 'image_url', image_url: { url } }
  }

  private async dataUrl(pointer: string): Promise<string | undefined> {
    const id = POINTER.exec(pointer)?.[1]
    if (!this.beside || id === undefined) return undefined
    this.names ??= named(await this.beside.names())
    const name = this.names.get(id)
    const bytes = name === undefined ? undefined : await this.beside.read(name)
    const type = bytes && typeOfBytes(bytes)
    return type && TAKEN.test(type) ? `data:${type};base64,${base64Of(bytes)}` : undefined
  }
}

function pointerIn({ type, image_url }: JsonObject): string | undefined {
  const { url } = objectIn(image_url)
  return type === 'image_url' && typeof url === 'string' && /^(?:file-service|sediment):/.test(url)
    ? url
    : undefined
}

/** Files by the id that their names begin with: `file-abc-photo.png`, `user-1/file_0a1b.dat`. */
function named(names: readonly string[]): Map<string, string> {
  const found = new Map<string, string>()
  for (const name of names) {
    const id = /^file[-_][A-Za-z0-9]+/.exec(name.split('/').at(-1)!)?.[0]
    if (id !== undefined && !found.has(id)) found.set(id, name)
  }
  return found
}

const BASE64_PIECE = 3 * 8_192

function base64Of(bytes: Uint8Array): string {
  let text = ''
  for (let at = 0; at < bytes.length; at += BASE64_PIECE)
    text += btoa(String.fromCharCode(...bytes.subarray(at, at + BASE64_PIECE)))
  return text
}
