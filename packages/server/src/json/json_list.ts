/** Characters that are written together: one item after the other costs more than reading them. */
const TEXT_LENGTH = 64 * 1024

/** A list as JSON, in texts of about that length: what stands ahead of its items, these, in pieces, and what stands behind. */
export async function* jsonList(
  begin: string,
  pieces: AsyncIterable<readonly string[]> | Iterable<readonly string[]>,
  end: string,
): AsyncGenerator<string> {
  let text = begin
  let separator = ''
  for await (const items of pieces)
    for (const item of items) {
      text += separator + item
      separator = ','
      if (text.length < TEXT_LENGTH) continue
      yield text
      text = ''
    }
  yield text + end
}
