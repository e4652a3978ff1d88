import { setImmediate as turn } from 'node:timers/promises'
import type { MessageFormat } from '@annals/messages'
import { type FitMessage, type FitOptions, FitToSend } from '@annals/messages/fit'
import { inOrders } from '../../threads/work_in_orders.js'
import type { WorkThread } from '../../threads/work_thread.js'
import { type FittedList, inStep } from './fitted_list.js'
import { blobLength, requireKnown } from './page_renderer.js'

/** Characters of blobs that are made fit on the event loop, in pieces of that length; more goes to the work thread. */
const INLINE_LENGTH_MAX = 128 * 1024
const PIECE_LENGTH_MAX = 32 * 1024

let lists = 0

/**
 * Makes messages, oldest first, fit to be sent in a format. It takes time and memory for these, however long the session is.
 * @throws AnnalsError unavailable, if a newer version stored a message in a format that is unknown here
 */
export async function fitMessages(
  thread: WorkThread,
  project_id: string,
  format: MessageFormat,
  messages: FitMessage[],
  options: FitOptions,
): Promise<FittedList> {
  for (const { format } of messages) requireKnown(format)
  const length = messages.reduce((sum, { blob }) => sum + blob.length, 0)
  if (length > INLINE_LENGTH_MAX) return fitOnThread(thread, project_id, format, messages, options)
  const list = new FitToSend(format, options)
  for (const [index, piece] of inOrders(messages, blobLength, PIECE_LENGTH_MAX).entries()) {
    if (index > 0) await turn()
    for (const message of piece) list.add(message)
  }
  return inStep(list)
}

async function fitOnThread(
  thread: WorkThread,
  project_id: string,
  format: MessageFormat,
  messages: FitMessage[],
  options: FitOptions,
): Promise<FittedList> {
  const list = ++lists
  try {
    for (const piece of inOrders(messages, blobLength))
      await thread.run(project_id, 'addToList', list, format, options, piece)
    return await thread.run(project_id, 'finishList', list)
  } finally {
    thread.tell('endList', list)
  }
}
