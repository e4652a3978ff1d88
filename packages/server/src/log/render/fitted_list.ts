import type { Added, FitToSend, Omitted } from '@annals/messages/fit'

/** A list that can be sent. `ids`, `seqs` and `items` run in step. */
export interface FittedList {
  items: string[]
  ids: string[]
  seqs: number[]
  omitted: Omitted[]
  added: Added[]
  sent_seqs: number[]
}

/** The finished list. */
export function inStep(list: FitToSend): FittedList {
  const { items, ...rest } = list.finish()
  return {
    items: items.map(({ json }) => json),
    ids: items.map(({ id }) => id),
    seqs: items.map(({ seq }) => seq),
    ...rest,
  }
}

/** What an answer says of a list beside its items. An omission of a kind is named once for each message. */
export function leftAndAdded({ omitted, added }: FittedList): Pick<FittedList, 'omitted' | 'added'> {
  const known = new Set<string>()
  const isNew = (one: Omitted) => !known.has(JSON.stringify(one)) && known.add(JSON.stringify(one))
  return { omitted: omitted.filter(isNew), added }
}
