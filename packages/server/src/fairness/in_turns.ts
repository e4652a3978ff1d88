import { setImmediate as turn } from 'node:timers/promises'

/** Items that a turn of the event loop acts on. */
const ITEMS_A_TURN = 64

/** Acts on each of many items, such as thousands of open tails, with the turns of all other work between. */
export async function inTurns<Item>(items: Iterable<Item>, act: (item: Item) => void): Promise<void> {
  let left = ITEMS_A_TURN
  for (const item of items) {
    if (left === 0) {
      await turn()
      left = ITEMS_A_TURN
    }
    left -= 1
    act(item)
  }
}
