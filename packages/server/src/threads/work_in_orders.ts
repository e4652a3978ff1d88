import { setImmediate as turn } from 'node:timers/promises'
import type { ThreadWork, WorkArguments, WorkName, WorkResult, WorkThread } from './work_thread.js'

/** Characters that are worked on on the event loop; more goes to the work thread. */
const INLINE_LENGTH_MAX = 32 * 1024
/** So often may the event loop do as much for the same caller, with a turn for the others between. */
const INLINE_ORDERS_MAX = 4
/** Characters per job of the work thread, except for a single longer item, so that others get their turns. */
const ORDER_LENGTH_MAX = 512 * 1024

/** Work on items one by one, of which each has a result. */
type ItemWork = {
  [Name in WorkName]: ThreadWork[Name] extends (
    items: infer _Items extends unknown[],
    ...more: never[]
  ) => unknown[]
    ? Name
    : never
}[WorkName]
type Item<Name extends ItemWork> = WorkArguments<Name> extends [Array<infer One>, ...unknown[]] ? One : never
type Further<Name extends ItemWork> = WorkArguments<Name> extends [unknown, ...infer More] ? More : []
type Result<Name extends ItemWork> = WorkResult<Name> extends Array<infer One> ? One : never

/** Does work on so many characters on the event loop if that is little, and otherwise on the thread. */
export async function workAtOnce<Name extends WorkName>(
  thread: WorkThread,
  owner: string,
  name: Name,
  length: number,
  ...values: WorkArguments<Name>
): Promise<WorkResult<Name>> {
  if (length > INLINE_LENGTH_MAX) return thread.run(owner, name, ...values)
  return thread.runHere(name, ...values)
}

/** Does it on the event loop if it is little, and otherwise on the thread, in orders of bounded size. */
export async function workInOrders<Name extends ItemWork>(
  thread: WorkThread,
  owner: string,
  name: Name,
  items: Item<Name>[],
  lengthOf: (item: Item<Name>) => number,
  ...more: Further<Name>
): Promise<Result<Name>[]> {
  const results: Result<Name>[] = []
  const small = inOrders(items, lengthOf, INLINE_LENGTH_MAX)
  const isLittle =
    small.length <= INLINE_ORDERS_MAX && items.every((item) => lengthOf(item) <= INLINE_LENGTH_MAX)
  for (const [index, order] of (isLittle ? small : inOrders(items, lengthOf)).entries()) {
    const values = [order, ...more] as unknown as WorkArguments<Name>
    if (isLittle && index > 0) await turn()
    const done = isLittle ? thread.runHere(name, ...values) : thread.run(owner, name, ...values)
    results.push(...((await done) as Result<Name>[]))
  }
  return results
}

/** Divides items into orders, in their order. */
export function inOrders<Any>(
  items: readonly Any[],
  lengthOf: (item: Any) => number,
  length_max = ORDER_LENGTH_MAX,
): Any[][] {
  const orders: Any[][] = []
  let length = Number.POSITIVE_INFINITY
  for (const item of items) {
    if (length + lengthOf(item) > length_max) {
      orders.push([])
      length = 0
    }
    orders.at(-1)!.push(item)
    length += lengthOf(item)
  }
  return orders
}
