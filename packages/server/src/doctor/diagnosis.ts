/** `failure`: data or service are in danger, or it cannot run. `warning`: it runs, and could do so better. */
export type State = 'ok' | 'warning' | 'failure' | 'skipped'

/** What one look at the set-up showed. `todo` is there unless all is well. */
export interface Diagnosis {
  check: string
  state: State
  found: string
  todo?: string
}

/** Says that all is well. */
export function well(check: string, found: string): Diagnosis {
  return { check, state: 'ok', found }
}

/** Says what is wrong and what to do about it. */
export function wrong(check: string, state: 'warning' | 'failure', found: string, todo: string): Diagnosis {
  return { check, state, found, todo }
}

/** Runs one check; one that cannot be made is told, and keeps none of the others from being made. */
export async function attempt(
  check: string,
  look: () => Promise<Diagnosis | Diagnosis[]>,
): Promise<Diagnosis[]> {
  try {
    return [await look()].flat()
  } catch (error) {
    const found = `could not be checked: ${(error as Error).message}`
    return [{ check, state: 'skipped', found, todo: 'See whether the database user may look at it.' }]
  }
}
