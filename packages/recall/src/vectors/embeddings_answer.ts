/** A vector as PostgreSQL reads it. */
interface Vector {
  /** An array of reals. */
  values: string
  /** The signs of its values, four to a hexadecimal digit: how many differ says about how far two vectors are apart. */
  sketch: string
}

interface Vectors {
  dimension: number
  /** In the order of the texts. */
  vectors: Vector[]
}

/** What vectors of other lengths would cost is not known. */
const DIMENSIONS_MAX = 4_096
/** Digits that a real has. */
const DIGITS = 7

/** Reads what an OpenAI-compatible endpoint answers for so many texts. @throws Error with a sentence when it is no such answer */
export function readEmbeddings(answer: string, count: number): Vectors {
  const { data } = JSON.parse(answer) as { data?: { index?: unknown; embedding?: unknown }[] }
  if (!Array.isArray(data) || data.length !== count)
    throw new Error('The answer has another number of vectors.')
  const vectors: Vector[] = []
  let dimension: number | undefined
  for (const [place, item] of data.entries()) {
    const { index = place, embedding } = Object(item) as { index?: unknown; embedding?: unknown }
    if (!Array.isArray(embedding) || !embedding.every(isReal) || embedding.every((value) => value === 0))
      throw new Error('The answer has something else than vectors.')
    dimension ??= embedding.length
    if (embedding.length !== dimension || dimension > DIMENSIONS_MAX)
      throw new Error('The answer has vectors of different lengths, or too long ones.')
    vectors[index as number] = vectorOf(embedding)
  }
  if (Object.keys(vectors).length !== count || vectors.length !== count)
    throw new Error('The answer has vectors of other texts.')
  return { dimension: dimension!, vectors: Array.from(vectors) }
}

function isReal(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(Math.fround(value))
}

function vectorOf(embedding: readonly number[]): Vector {
  let sketch = ''
  for (let at = 0; at < embedding.length; at += 4) {
    let digit = 0
    for (let bit = 0; bit < 4; bit++) if (embedding[at + bit]! > 0) digit |= 8 >> bit
    sketch += digit.toString(16)
  }
  return { values: `{${embedding.map((value) => Math.fround(value).toPrecision(DIGITS)).join(',')}}`, sketch }
}
