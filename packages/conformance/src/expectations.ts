/** A promise that was not kept; the message says what was seen instead. */
export class Broken extends Error {}

export function must(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Broken(otherwise)
}

/** Compares lists of names or numbers. */
export function mustEqual(seen: unknown[], expected: unknown[], what: string): void {
  const [a, b] = [JSON.stringify(seen), JSON.stringify(expected)]
  must(a === b, `${what}: ${short(a)} instead of ${short(b)}.`)
}

function short(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}

/** 1 to n. */
export function upTo(n: number): number[] {
  return Array.from({ length: n }, (_, index) => index + 1)
}

/** Acts so many times at once. Waits for all of them, so that nothing goes on after a promise was found broken. */
export async function repeat<Result>(
  times: number,
  act: (index: number) => Promise<Result>,
): Promise<Result[]> {
  const all = upTo(times).map((index) => act(index))
  await Promise.allSettled(all)
  return Promise.all(all)
}
