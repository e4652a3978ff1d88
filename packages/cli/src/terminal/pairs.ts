/** The keys in which objects differ: those that are equal everywhere tell nothing. */
export function tellingKeys(objects: Record<string, unknown>[]): (key: string) => boolean {
  const [first] = objects.map(
    (object) => new Map(Object.entries(object).map(([k, v]) => [k, JSON.stringify(v)])),
  )
  return (key) => objects.some((object) => JSON.stringify(object[key]) !== first?.get(key))
}

/** An object on one line, as pairs, with the given keys first. */
export function pairsOf(
  object: Record<string, unknown>,
  comesFirst: (key: string) => boolean = () => true,
): string {
  const entries = Object.entries(object)
  return [...entries.filter(([key]) => comesFirst(key)), ...entries.filter(([key]) => !comesFirst(key))]
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ')
}
