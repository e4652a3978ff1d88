/**
 * `failure`: data or service are in danger, or the service cannot run. `warning`: it runs, but not as well as it
 * could.
 */
export type State = 'ok' | 'warning' | 'failure' | 'skipped'

export interface Diagnosis {
  check: string
  state: State
  found: string
  todo?: string
}

export function well(check: string, found: string): Diagnosis {
  return { check, state: 'ok', found }
}

export function wrong(check: string, state: 'warning' | 'failure', found: string, todo: string): Diagnosis {
  return { check, state, found, todo }
}

/** Runs one check. If it fails with an error, that is reported, and the other checks still run. */
export async function attempt(
  check: string,
  look: () => Promise<Diagnosis | Diagnosis[]>,
): Promise<Diagnosis[]> {
  try {
    return [await look()].flat()
  } catch (error) {
    const found = `could not be checked: ${(error as Error).message}`
    return [{ check, state: 'skipped', found, todo: 'Check whether the database user may read it.' }]
  }
}
