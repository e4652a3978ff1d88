/** A learning space's name: `name`, `title` or `topic` in its meta; undefined if it has none. */
export function spaceName(meta: Record<string, unknown>): string | undefined {
  return ['name', 'title', 'topic']
    .map((key) => meta[key])
    .find((value): value is string => typeof value === 'string' && value.trim() !== '')
}
