import { expect, it } from 'vitest'
import { Embeddings, EmbeddingsFailure } from '../../src/outgoing/embeddings.ts'

const never = new AbortController().signal

/** A model that fails at some requests; `asked`: the texts of each. The one that it is probed with is left out. */
function modelThat(
  statusOf: (texts: string[]) => number,
  dimensionOf: (texts: string[]) => number = () => 2,
) {
  const asked: string[][] = []
  let probes = 0
  const embeddings = new Embeddings(
    'model',
    async (body) => {
      const { input } = JSON.parse(body) as { input: string[] }
      if (input[0]!.startsWith('Where is')) probes += 1
      else asked.push(input)
      return { status: statusOf(input), text: body }
    },
    async (_owner, answer) => {
      const { input } = JSON.parse(answer) as { input: string[] }
      const vectors = input.map((text) => ({ values: text, sketch: '' }))
      return { dimension: dimensionOf(input), vectors }
    },
  )
  return { embeddings, asked, sizes: () => asked.map(({ length }) => length), probes: () => probes }
}

const texts = (count: number) => Array.from({ length: count }, (_, index) => `text ${index}`)

it('texts are sent 64 at a time, and fewer where they are long, and empty ones are not', async () => {
  const { embeddings, sizes } = modelThat(() => 200)
  const { name, vectors } = await embeddings.of('a', [...texts(100), '', ...texts(2)], never)
  expect(name).toBe('2 model')
  expect(vectors.map((vector) => vector?.values)).toEqual([...texts(100), undefined, ...texts(2)])
  expect(sizes()).toEqual([64, 38])
  await embeddings.of('a', Array(4).fill('x'.repeat(40_000)), never)
  expect(sizes().slice(2)).toEqual([2, 2])
})

it('a text that the model fails at goes alone in the end, three times, and then gets no vector; the others do', async () => {
  const { embeddings, sizes, asked } = modelThat((input) => (input.includes('text 5') ? 400 : 200))
  const first = await embeddings.of('a', texts(70), never)
  expect(first.vectors.map((vector) => vector?.values)).toEqual(texts(5))
  expect(sizes().slice(0, 3)).toEqual([64, 16, 4])
  expect(asked.at(-1)).toEqual(['text 5'])
  const rest = texts(70).slice(5)
  await expect(embeddings.of('a', rest, never)).rejects.toMatchObject({ is_away: false })
  expect(embeddings.skipped).toBe(0)
  const last = await embeddings.of('a', rest, never)
  expect(last.vectors.map((vector) => vector?.values)).toEqual([undefined, ...rest.slice(1)])
  expect(embeddings.skipped).toBe(1)
  expect(embeddings.restMs()).toBe(0)
})

it.each([401, 404, 429])(
  'a model that answers %s is left alone, and no text is blamed for it',
  async (status) => {
    let is_away = false
    const { embeddings, asked } = modelThat(() => (is_away ? status : 200))
    expect(await embeddings.name(never)).toBe('2 model')
    is_away = true
    const failure = await embeddings.of('a', texts(3), never).catch((error) => error)
    expect(failure).toBeInstanceOf(EmbeddingsFailure)
    expect(failure.is_away).toBe(true)
    expect(asked).toHaveLength(1)
    expect(embeddings.restMs()).toBeGreaterThan(0)
    expect(await embeddings.ofQuestion('a', 'Is anybody there?')).toBeUndefined()
    expect(asked).toHaveLength(1)
  },
)

it('a model that fails at everything is away, however it fails', async () => {
  let is_broken = false
  const { embeddings, probes } = modelThat(() => (is_broken ? 500 : 200))
  await embeddings.name(never)
  is_broken = true
  await expect(embeddings.of('a', texts(3), never)).rejects.toMatchObject({ is_away: true })
  expect(probes()).toBe(2)
  expect(embeddings.skipped).toBe(0)
})

it('vectors of another length are never taken, of texts or of a question', async () => {
  let dimension = 2
  const { embeddings } = modelThat(
    () => 200,
    () => dimension,
  )
  expect(await embeddings.ofQuestion('a', 'Yes?')).toMatchObject({ name: '2 model' })
  await embeddings.name(never)
  dimension = 3
  expect(await embeddings.ofQuestion('a', 'Yes?')).toBeUndefined()
  await expect(embeddings.of('a', texts(3), never)).rejects.toMatchObject({ is_away: true })
})

it('a question at which the model fails leaves those of other projects as they are', async () => {
  const { embeddings, asked } = modelThat(([text]) => (text === 'poison' ? 500 : 200))
  expect(await embeddings.ofQuestion('a', 'poison')).toBeUndefined()
  expect(await embeddings.ofQuestion('b', 'Yes?')).toMatchObject({ name: '2 model' })
  expect(await embeddings.ofQuestion('a', 'Yes?')).toBeUndefined()
  expect(asked).toEqual([['poison'], ['Yes?']])
})
