/** Does `work` for every item, at most `at_once_max` at a time. The results are in the order of the items. */
export async function doAtOnce<Item, Result>(
  items: readonly Item[],
  at_once_max: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  let next = 0
  const worker = async () => {
    while (next < items.length) {
      const index = next++
      try {
        results[index] = await work(items[index]!)
      } catch (error) {
        // No further item is begun once one has failed.
        next = items.length
        throw error
      }
    }
  }
  await Promise.all(Array.from({ length: at_once_max }, worker))
  return results
}
