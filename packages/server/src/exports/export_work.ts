import { type ExportFormat, sessionDocument } from '@annals/importers/exporting'
import { type MessageFormat, markBlobs, mayReferToBlobs } from '@annals/messages'
import { parseJson } from '@annals/messages/json'

type Document = ReturnType<typeof sessionDocument>
type About = Parameters<typeof sessionDocument>[0]
type Entry = Parameters<Document['add']>[0]

const documents = new Map<number, Document>()

/** Sessions on their way into another format, each under a number, and no more of it than a few entries. */
export const EXPORT_WORK = {
  beginExport(
    number: number,
    format: Exclude<ExportFormat, 'jsonl'>,
    session: string,
    user: string | undefined,
  ): void {
    documents.set(number, sessionDocument({ session: parseJson(session) as About['session'], user }, format))
  },

  /** Takes items of the timeline. Returns what can be written by now, with marks where bytes of blobs belong. */
  addToExport(number: number, items: string[]): string {
    const document = documents.get(number)!
    return items.map((item) => document.add(readItem(item))).join('')
  },

  endOfExport(number: number): string {
    return documents.get(number)!.end()
  },

  closeExport(number: number): void {
    documents.delete(number)
  },
}

function readItem(text: string): Entry {
  const item = parseJson(text) as Entry
  if (item.kind === 'message' && mayReferToBlobs(text)) markBlobs(item.format as MessageFormat, item.blob)
  return item
}

type ExportWork = typeof EXPORT_WORK

declare module '@annals/kits/threads/work_thread.js' {
  interface ThreadWork extends ExportWork {}
}
