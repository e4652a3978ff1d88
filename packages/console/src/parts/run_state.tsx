/** The state of a session's run, as a chip. */
export function RunStateChip({ state }: { state: string }) {
  return <span className={`outcome run-state is-${state}`}>{state}</span>
}
