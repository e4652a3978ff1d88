import { Readable } from 'node:stream'
import { vi } from 'vitest'

/** A stream of these chunks. */
export const streamOf = (chunks: Iterable<string> | AsyncIterable<string>) =>
  Readable.toWeb(Readable.from(chunks)) as unknown as ReadableStream<string>

/** A source that a test feeds. */
export const fedSource = () => {
  let controller: ReadableStreamDefaultController<string>
  const cancel = vi.fn()
  const stream = new ReadableStream<string>({
    start: (given) => {
      controller = given
    },
    cancel,
  })
  return {
    make: () => stream,
    cancel,
    say: (text: string) => controller.enqueue(text),
    end: () => controller.close(),
    fail: () => controller.error(new Error('the model failed')),
  }
}

/** Reads until a text has come, and then goes on. */
export const readerOf = (stream: ReadableStream<string>) => {
  const reader = stream.getReader()
  let read = ''
  return {
    until: async (text: string) => {
      while (!read.includes(text)) {
        const { done, value } = await reader.read()
        if (done) break
        read += value
      }
      return read
    },
    rest: async () => {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return read
        read += value
      }
    },
    cancel: () => reader.cancel(),
  }
}
