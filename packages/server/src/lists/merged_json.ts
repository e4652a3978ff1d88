/** Merges `change` into the top level of `base`; a null in `change` deletes the key. Nulls already in `base` stay. */
export function mergedJson(base: string, change: string): string {
  return `(${base} || ${change}) - ARRAY(SELECT c.key FROM jsonb_each(${change}) AS c WHERE c.value = 'null'::jsonb)`
}
