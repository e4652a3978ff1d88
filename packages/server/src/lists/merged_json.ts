/**
 * The top level of `base` overlaid with `change`, keys that `change` sets to null left out. What was null in
 * `base` before stays: only a null that is sent deletes.
 */
export function mergedJson(base: string, change: string): string {
  return `(${base} || ${change}) - ARRAY(SELECT c.key FROM jsonb_each(${change}) AS c WHERE c.value = 'null'::jsonb)`
}
