/** An entry, by what its sender can recognise it by. */
export interface Kept {
  seq: number
  marker: string
}

/** What the victim was told is stored. */
export class Ledger {
  private readonly sessions = new Map<string, Kept[]>()

  /** A session was acknowledged. */
  open(session: string): void {
    this.sessions.set(session, [])
  }

  /** An entry of a session was acknowledged. */
  keep(session: string, entry: Kept): void {
    this.sessions.get(session)!.push(entry)
  }

  /** What a session must have at this moment. */
  entriesOf(session: string): readonly Kept[] {
    return this.sessions.get(session) ?? []
  }

  get size(): number {
    return [...this.sessions.values()].reduce((sum, entries) => sum + entries.length, 0)
  }

  get sessionIds(): string[] {
    return [...this.sessions.keys()]
  }
}

/**
 * What was acknowledged and is not there once at its place, in a sentence each. `stored` is undefined where the session
 * itself is not there.
 */
export function missing(
  session: string,
  acknowledged: readonly Kept[],
  stored: readonly Kept[] | undefined,
): string[] {
  if (!stored) return [`session ${session} with ${acknowledged.length} acknowledged entries is not there`]
  const places = new Map<string, number[]>()
  for (const { marker, seq } of stored) places.set(marker, [...(places.get(marker) ?? []), seq])
  return acknowledged.flatMap(({ marker, seq }) => {
    const found = places.get(marker) ?? []
    if (found.length === 1 && found[0] === seq) return []
    const where = found.length === 0 ? 'not there' : `at ${found.join(' and ')}`
    return [`entry ${marker} was acknowledged at ${seq} of session ${session} and is ${where}`]
  })
}
