import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { expect, it } from 'vitest'
import { AnswerBytes } from '../../../src/http/answer/answer.ts'

const newResponse = () => new EventEmitter() as ServerResponse
const textOf = (bytes: AnswerBytes) => bytes.parts.join('')

it('has all texts in their order and tells their length in bytes, also when they are more than a buffer takes', () => {
  for (const unit of ['a', 'é', '你', '🙂']) {
    const bytes = new AnswerBytes(newResponse())
    const texts = Array.from({ length: 40 }, (_, at) => `${at}${unit.repeat(30_000)}`)
    for (const text of texts) bytes.add(text)
    bytes.add('the end')
    const whole = `${texts.join('')}the end`
    expect(textOf(bytes) === whole).toBe(true)
    expect(bytes.length).toBe(Buffer.byteLength(whole))
  }
})

it('leaves its bytes alone until its response is closed, and uses their memory again afterwards', () => {
  const response = newResponse()
  const first = new AnswerBytes(response)
  first.add('first')
  const second = new AnswerBytes(newResponse())
  second.add('second')
  expect(textOf(first)).toBe('first')
  const [memory] = first.parts as [Buffer]
  response.emit('close')
  const third = new AnswerBytes(newResponse())
  third.add('third')
  expect((third.parts[0] as Buffer).buffer).toBe(memory.buffer)
  expect(textOf(second)).toBe('second')
})
