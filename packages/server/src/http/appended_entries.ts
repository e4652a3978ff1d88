import type { AppendEntriesBody } from '../contract/entry.js'
import { AnnalsError } from '../errors.js'
import { newId } from '../ids.js'
import { elementTexts, memberTexts } from '../json/slices.js'
import type { AppendedEntry } from '../log/append_request.js'
import { messageEntry } from '../messages/message_entry.js'
import { parseJson } from '../messages/message_format.js'
import { checkObjectBytes } from './json_parameters.js'

/** What a single event is stored with. `bytes`: of the body, as it will be written. */
export function eventEntry(type: string, members: Map<string, string>, bytes: number): AppendedEntry {
  return { ...eventMembers(type, members), id: newId(), id_given: false, bytes }
}

function eventMembers(
  type: string,
  members: Map<string, string>,
): Omit<AppendedEntry, 'id' | 'id_given' | 'bytes'> {
  return {
    kind: 'event',
    type,
    format: null,
    role: null,
    tokens: 0,
    data: members.get('data')!,
    meta: null,
  }
}

/** What of a message passes through as it was sent. A meta of null counts as none. */
export function messageMembers(
  format: string,
  members: Map<string, string>,
): Pick<AppendedEntry, 'kind' | 'type' | 'format' | 'data' | 'meta'> {
  const meta = members.get('meta')
  return {
    kind: 'message',
    type: null,
    format,
    data: members.get('blob')!,
    meta: meta === undefined || meta === 'null' ? '{}' : meta,
  }
}

/**
 * What the entries of a batch are stored with, in order. `text` is the body, `bytes` its length as PostgreSQL will
 * write it.
 * @throws AnnalsError invalid_request, payload_too_large; each names the entry's index
 */
export function batchEntries(body: AppendEntriesBody, text: string, bytes: number): AppendedEntry[] {
  // Which entry's numbers grow is not known; that all of them together are accounted for is what counts.
  const spread = Math.ceil((bytes - Buffer.byteLength(text)) / body.entries.length)
  const texts = elementTexts(memberTexts(text).get('entries')!)
  const seen = new Set<string>()
  return body.entries.map((entry, index) => {
    const given = entry.id?.toLowerCase()
    if (given !== undefined && seen.has(given)) {
      throw new AnnalsError(
        'invalid_request',
        `/entries/${index}/id stands for an earlier entry of the batch already.`,
      )
    }
    if (given !== undefined) seen.add(given)
    const members = memberTexts(texts[index]!)
    const id = given ?? newId()
    const common = { id, id_given: given !== undefined, bytes: Buffer.byteLength(texts[index]!) + spread }
    if (entry.kind === 'event') return { ...eventMembers(entry.type, members), ...common }
    checkObjectBytes(`/entries/${index}/meta`, entry.meta)
    const { format = 'openai' } = entry
    const blob = parseJson(members.get('blob')!)
    const { role, tokens } = messageEntry(format, blob, id, `/entries/${index}/blob`)
    return { ...messageMembers(format, members), ...common, role, tokens }
  })
}
