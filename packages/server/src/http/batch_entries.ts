import type { AppendEntriesBody } from '../contract/entry.js'
import { AnnalsError } from '../errors.js'
import { newId } from '../ids.js'
import type { AppendedEntry } from '../log/append_request.js'
import { messageEntry } from '../messages/message_entry.js'
import { checkObjectBytes } from './json_parameters.js'

/**
 * What the entries of a batch are stored with, in order. `expansion`: bytes that its numbers grow by when stored.
 * @throws AnnalsError invalid_request, payload_too_large; each names the entry's index
 */
export function batchEntries(body: AppendEntriesBody, expansion: number): AppendedEntry[] {
  // Which entry's numbers grow is not known; that all of them together are accounted for is what counts.
  const spread = Math.ceil(expansion / body.entries.length)
  const seen = new Set<string>()
  return body.entries.map((entry, index) => {
    const id = entry.id?.toLowerCase()
    if (id !== undefined && seen.has(id)) {
      throw new AnnalsError(
        'invalid_request',
        `/entries/${index}/id stands for an earlier entry of the batch already.`,
      )
    }
    if (id !== undefined) seen.add(id)
    const bytes = Buffer.byteLength(JSON.stringify(entry)) + spread
    const common = { id: id ?? newId(), id_given: id !== undefined, bytes }
    if (entry.kind === 'event') return { ...common, tokens: 0, role: '' }
    checkObjectBytes(`/entries/${index}/meta`, entry.meta)
    const { role, tokens } = messageEntry(
      entry.format ?? 'openai',
      entry.blob,
      common.id,
      `/entries/${index}/blob`,
    )
    return { ...common, role, tokens }
  })
}
