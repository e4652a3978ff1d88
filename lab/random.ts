/** Pseudo-random numbers, the same for the same seed. */
export interface Random {
  /** From 0 up to 1. */
  next(): number
  /** An integer from `from` to `to`, both included. */
  integer(from: number, to: number): number
  pick<T>(items: readonly T[]): T
  chance(probability: number): boolean
  shuffled<T>(items: readonly T[]): T[]
  /** A separate stream, so that one user's draws do not affect another's. */
  fork(name: string): Random
}

/** The stream of a seed (mulberry32). */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const integer = (from: number, to: number) => from + Math.floor(next() * (to - from + 1))
  return {
    next,
    integer,
    pick: (items) => items[integer(0, items.length - 1)]!,
    chance: (probability) => next() < probability,
    shuffled: (items) => {
      const shuffled = [...items]
      for (let last = shuffled.length - 1; last > 0; last--) {
        const other = integer(0, last)
        ;[shuffled[last], shuffled[other]] = [shuffled[other]!, shuffled[last]!]
      }
      return shuffled
    },
    fork: (name) => seededRandom(hash(`${seed}/${name}`)),
  }
}

function hash(text: string): number {
  let value = 0x811c9dc5
  for (const character of text) value = Math.imul(value ^ character.codePointAt(0)!, 0x01000193)
  return value >>> 0
}
