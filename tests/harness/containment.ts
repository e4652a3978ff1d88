export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/**
 * PostgreSQL's `whole @> part` for jsonb, as its manual describes it: an object holds every key of the part,
 * each containing the part's value; a list holds, for every element of the part, some element that contains
 * it; a scalar contains its equal. Below the top level a list does not contain a bare scalar.
 */
export function contains(whole: Json, part: Json): boolean {
  if (Array.isArray(part)) {
    return Array.isArray(whole) && part.every((wanted) => whole.some((element) => contains(element, wanted)))
  }
  if (typeof part === 'object' && part !== null) {
    if (typeof whole !== 'object' || whole === null || Array.isArray(whole)) return false
    return Object.entries(part).every(([key, wanted]) => {
      return Object.hasOwn(whole, key) && contains(whole[key]!, wanted)
    })
  }
  return whole === part
}
