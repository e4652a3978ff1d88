import { describe, expect, it, vi } from 'vitest'
import { LineBuffer } from '../src/line_buffer.ts'

function newBuffer() {
  const written: string[] = []
  return { written, lines: new LineBuffer({ write: (text) => written.push(text) }) }
}

describe('lines of the log', () => {
  it('are written together, in their order, before a moment has passed', async () => {
    const { written, lines } = newBuffer()
    for (let n = 0; n < 10; n += 1) lines.write(`${n}\n`)
    expect(written).toEqual([])
    await vi.waitFor(() => expect(written).toEqual(['0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n']))
    lines.write('again\n')
    await vi.waitFor(() => expect(written).toHaveLength(2))
  })

  it('are written at once where there are many, and when it is asked for', () => {
    const { written, lines } = newBuffer()
    const line = `${'x'.repeat(999)}\n`
    for (let n = 0; n < 17; n += 1) lines.write(line)
    expect(written).toEqual([line.repeat(17)])
    lines.write(line)
    lines.flush()
    lines.flush()
    expect(written).toEqual([line.repeat(17), line])
  })
})
