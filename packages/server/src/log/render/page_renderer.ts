import { AnnalsError } from '@annals/kits/errors.js'
import { inOrders, type WorkThread, workInOrders } from '@annals/kits/threads/work_thread.js'
import { MESSAGE_FORMATS, type MessageFormat, StoredRenderer, type StoredText } from '@annals/messages'
import { type ContextMessage, type StoredSeq, textMessage } from '@annals/messages/context'
import { storedPartsJson } from '../append_bodies.js'

/** Characters of a page's blobs that are converted on the event loop; larger pages go to the work thread. */
const INLINE_LENGTH_MAX = 32 * 1024

let conversations = 0

/** Renders the messages of a page in a format, oldest first, each as the items that it becomes. */
export class PageRenderer {
  private readonly inline: StoredRenderer
  /** Rendered by `inline`: the work thread's renderer must see it too. */
  private seen: StoredText[] = []
  private seen_length = 0
  /** The conversation's number on the work thread, once it is there. */
  private conversation: number | undefined

  constructor(
    private readonly thread: WorkThread,
    private readonly project_id: string,
    private readonly format: MessageFormat,
  ) {
    this.inline = new StoredRenderer(format)
  }

  /** @throws AnnalsError unavailable, if a newer version stored a message in a format that is unknown here */
  async render(messages: StoredText[]): Promise<string[][]> {
    for (const { format } of messages) requireKnown(format)
    this.seen_length += messages.reduce((length, { blob }) => length + blob.length, 0)
    if (this.seen_length <= INLINE_LENGTH_MAX) {
      this.seen.push(...messages)
      return messages.map((message) => this.inline.render(message))
    }
    this.conversation ??= ++conversations
    const orders = inOrders([...this.seen, ...messages], blobLength)
    const skipped = this.seen.length
    this.seen = []
    const rendered: string[][] = []
    for (const order of orders) {
      rendered.push(
        ...(await this.thread.run(this.project_id, 'renderMessages', this.conversation, this.format, order)),
      )
    }
    return rendered.slice(skipped)
  }

  /** Call it after the last message, however the page ended. */
  close(): void {
    if (this.conversation !== undefined) this.thread.tell('endConversation', this.conversation)
  }
}

export async function messageParts(
  thread: WorkThread,
  project_id: string,
  format: MessageFormat,
  blob: string,
  id: string,
): Promise<string> {
  requireKnown(format)
  if (blob.length > INLINE_LENGTH_MAX) return await thread.run(project_id, 'messageParts', format, blob, id)
  return storedPartsJson(format, blob, id)
}

export async function contextMessages(
  thread: WorkThread,
  project_id: string,
  messages: StoredSeq[],
): Promise<ContextMessage[]> {
  for (const { format } of messages) requireKnown(format)
  const texts = messages.map(textMessage)
  const others = messages.filter((_, at) => !texts[at])
  const read = (await workInOrders(thread, project_id, 'contextMessages', others, blobLength)).values()
  return texts.map((message) => message ?? read.next().value!)
}

/** During a rolling upgrade, nodes of the next version store what this one cannot convert. */
export function requireKnown(format: MessageFormat): void {
  if (MESSAGE_FORMATS.includes(format)) return
  const problem = `A newer version of Annals stored a message in the format ${format}, which this node cannot convert.`
  throw new AnnalsError('unavailable', `${problem} Retry; the timeline shows the message as it was sent.`)
}

export function blobLength({ blob }: { blob: string }): number {
  return blob.length
}
