import { describe, expect, it } from 'vitest'
import { derivedId, readOpenAiRun } from '../../src/transfer/openai_run.js'

const read = (run: unknown, number = 7) => readOpenAiRun(Buffer.from(JSON.stringify(run)), number)
const RUN = {
  user: 'omar',
  configs: { agent: 'gpt-4o' },
  messages: [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'Hi' },
  ],
}

describe('a run', () => {
  it('is read with its configs and messages as they are written', () => {
    const text =
      '{"configs": {"n": 1.50, "big": 12345678901234567890} ,"messages":[ {"role":"user", "content":"é"} ]}'
    const run = readOpenAiRun(Buffer.from(text), 1)
    expect(run).toMatchObject({ user: undefined, configs: '{"n": 1.50, "big": 12345678901234567890}' })
    expect(run.messages).toMatchObject([{ blob: '{"role":"user", "content":"é"}', role: 'user' }])
  })

  it('has ids that are the same each time, and its own', () => {
    const ids = ({ session_id, messages }: ReturnType<typeof read>) => [
      session_id,
      ...messages.map(({ id }) => id),
    ]
    expect(ids(read(RUN))).toEqual(ids(read(RUN)))
    const other = [read(RUN), read(RUN, 8), read({ ...RUN, user: 'mia' })].flatMap(ids)
    expect(new Set(other).size).toBe(9)
    for (const id of other)
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    // A change of this id would store every file again that was imported before.
    expect(derivedId('x')).toBe('d5dafa43-0bcb-8333-b24c-24477aeb271d')
  })

  it.each<[string, unknown, string]>([
    ['no object', [], 'Line 7: it is not a JSON object'],
    ['a member too many', { ...RUN, reward: 1 }, 'Line 7: a run has user, configs, messages and no "reward"'],
    ['a user that is no text', { ...RUN, user: 1 }, 'Line 7: user must be a string'],
    ['configs that are no object', { ...RUN, configs: [] }, 'Line 7: configs must be an object'],
    [
      'configs that are too large',
      { ...RUN, configs: { a: 'x'.repeat(65_536) } },
      'Line 7: configs must not exceed',
    ],
    ['no messages', { user: 'omar' }, 'Line 7: messages must be an array'],
    [
      'a message that is none',
      { ...RUN, messages: [{ role: 'user', content: 'a' }, { role: 'x' }] },
      'Line 7: /messages/1/role is invalid',
    ],
    ['a message that is no object', { ...RUN, messages: ['Hi'] }, 'Line 7: /messages/0 is invalid'],
    [
      'a value that cannot be stored',
      { ...RUN, configs: { a: '\0' } },
      'Line 7: it cannot be stored: at /configs/a',
    ],
  ])('with %s is refused', (_what, run, message) => {
    expect(() => read(run)).toThrow(message)
  })
})
