import type { Attack } from '../attackers/attack.ts'
import type { Call } from '../http.ts'
import { newSessions } from './new_sessions.ts'
import { FORMATS } from './stalled_readers.ts'

const LANES = 8
const BYTES = 1_000_000

const list = (item: string) => `[${`${item},`.repeat(Math.floor(BYTES / (item.length + 1)) - 20)}${item}]`
const nested = (open: string, close: string, levels: number) =>
  `${open.repeat(levels)}1${close.repeat(levels)}`
const keys = Array.from({ length: 70_000 }, (_, at) => `"key-${at}":1`).join(',')
const text = (shape: string) => shape.repeat(Math.floor(BYTES / shape.length) - 50)

/** JSON that is little to send and much to look at. */
const JSONS = [
  list('{}'),
  list('[]'),
  list('1'),
  list('""'),
  list('1e131071'),
  list('{"a":{"a":{"a":1}}}'),
  nested('[', ']', 990),
  nested('{"a":', '}', 990),
  nested('[', ']', 400_000),
  '['.repeat(BYTES),
  '{"a":'.repeat(BYTES / 5),
  `{${keys}}`,
  `{${'"a":1,'.repeat(150_000)}"a":1}`,
  `"${'\\u0041'.repeat(BYTES / 6)}"`,
  `"${'\\ud83d\\ude00'.repeat(BYTES / 12)}"`,
  `0.${'1'.repeat(16_000)}`,
  `"${'\\\\'.repeat(BYTES / 2 - 100)}"`,
]

const MESSAGES = ['aA1!', '<|endoftext|>', 'a', ' ', '\\n', '>', '*a_', '1', '漢字', '`'].map(text)

/** The content of a message, as each format has it. */
const BLOBS: Record<string, (content: string) => string> = {
  openai: (content) => `{"role":"user","content":"${content}"}`,
  anthropic: (content) => `{"role":"user","content":[{"type":"text","text":"${content}"}]}`,
  gemini: (content) => `{"role":"user","parts":[{"text":"${content}"}]}`,
  acontext: (content) => `{"role":"user","parts":[{"type":"text","text":"${content}"}]}`,
  responses: (content) => `{"type":"function_call_output","call_id":"c","output":"${content}"}`,
}

const PARTS = list('{"type":"text","text":"a"}')

export const heavyBodies: Attack = {
  name: 'heavy-bodies',
  does: 'bodies of 1 MB that are a lot of work to parse, check, count or convert, with a key',
  answers: [200, 201, 400, 413, 429, 503],
  seconds: 5,
  async strike(ground) {
    const { key } = ground.target
    const [session] = await newSessions(ground, 1)
    const path = `/api/v1/session/${session}`
    const calls = (): Call[] => [
      ...JSONS.flatMap((json) => [
        { method: 'POST', path: `${path}/events`, body: json },
        { method: 'POST', path: `${path}/events`, body: `{"type":"note","data":{"a":${json}}}` },
        { method: 'POST', path: `${path}/entries`, body: `{"entries":${json}}` },
        { method: 'POST', path: `${path}/messages`, body: `{"blob":{"role":"user","content":${json}}}` },
      ]),
      ...MESSAGES.flatMap((content) =>
        FORMATS.map((format) => ({
          method: 'POST',
          path: `${path}/messages`,
          body: `{"format":"${format}","blob":${BLOBS[format]!(content)}}`,
        })),
      ),
      { method: 'POST', path: `${path}/messages`, body: `{"blob":{"role":"user","content":${PARTS}}}` },
      {
        method: 'POST',
        path: `${path}/messages`,
        body: `{"format":"responses","blob":{"type":"reasoning","id":"r","summary":${PARTS}}}`,
      },
      ...FORMATS.map((format) => ({ path: `${path}/messages?format=${format}&limit=5&time_desc=true` })),
      { path: `${path}/token_counts` },
    ]
    let turns: Call[] = []
    await ground.lanes(LANES, () => {
      if (turns.length === 0) turns = ground.random.shuffled(calls())
      return ground.ask({ ...turns.pop()!, key })
    })
  },
}
