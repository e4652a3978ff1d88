/** The shortest beginning of an id that a narrow terminal shows: the time to the millisecond. */
const ID_LENGTH_MIN = 13
/** From this width on, ids are whole. */
export const WIDE = 130

/** How a terminal of this width shows these ids: by what tells them apart, which commands take as well. */
export function shortIds(all: Iterable<string>, width: number): (id: string) => string {
  if (width >= WIDE) return (id) => id
  const ids = new Set(all)
  let length = ID_LENGTH_MIN
  while (new Set([...ids].map((id) => id.slice(0, length))).size < ids.size) length += 1
  return (id) => id.slice(0, length)
}
