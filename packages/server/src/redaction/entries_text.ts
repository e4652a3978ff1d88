import { AnnalsError } from '@annals/kits/errors.js'
import type { MessageFormat } from '@annals/messages'
import { elementSlices, memberTexts } from '@annals/messages/json'
import type { AppendedEntry } from '../log/append/append_request.js'
import { messageEntry } from '../log/append_bodies.js'

export function textOfEntries(entries: readonly AppendedEntry[]): string {
  const texts = entries.map(({ kind, type, data, meta }) =>
    kind === 'event'
      ? `{"type":${JSON.stringify(type)},"data":${data}}`
      : `{"blob":${data},"meta":${meta ?? '{}'}}`,
  )
  return `[${texts.join(',')}]`
}

export function rewrittenEntries(entries: readonly AppendedEntry[], text: string): AppendedEntry[] {
  const slices = elementSlices(text)
  return entries.map((entry, index) => {
    const { from, to } = slices[index]!
    const members = memberTexts(text.slice(from, to))
    const data = members.get(entry.kind === 'event' ? 'data' : 'blob')!
    if (data === entry.data) return entry
    const bytes = entry.bytes + Buffer.byteLength(data) - Buffer.byteLength(entry.data)
    if (entry.kind === 'event') return { ...entry, data, bytes }
    return { ...entry, data, meta: members.get('meta')!, bytes, tokens: tokensOf(entry, data) }
  })
}

function tokensOf({ format, id, tokens }: AppendedEntry, data: string): number {
  try {
    return messageEntry(format as MessageFormat, data, JSON.parse(data), id, '/blob').tokens
  } catch (error) {
    if (error instanceof AnnalsError) return tokens
    throw error
  }
}
