import type { SerializerProtocol } from '@langchain/langgraph-checkpoint'

/**
 * A serialized value as it stands in an event: JSON as JSON, so that people can read it, everything else as base64.
 * `type` is the serializer's own name for its form.
 */
export type StoredValue = { type: string; json: unknown } | { type: string; base64: string }

export async function storedValue(serde: SerializerProtocol, value: unknown): Promise<StoredValue> {
  const [type, bytes] = await serde.dumpsTyped(value)
  if (type === 'json') return { type, json: JSON.parse(new TextDecoder().decode(bytes)) }
  return { type, base64: Buffer.from(bytes).toString('base64') }
}

export function givenValue(serde: SerializerProtocol, stored: StoredValue): Promise<unknown> {
  if ('json' in stored) return serde.loadsTyped(stored.type, JSON.stringify(stored.json))
  return serde.loadsTyped(stored.type, new Uint8Array(Buffer.from(stored.base64, 'base64')))
}
