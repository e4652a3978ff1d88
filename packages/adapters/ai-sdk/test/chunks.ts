import type { UIMessageChunk } from 'ai'

/** An answer with a thought, two steps, a tool call whose input streams, a source, data and text. */
const CHUNKS: UIMessageChunk[] = [
  { type: 'start', messageId: 'answer' },
  { type: 'start-step' },
  { type: 'reasoning-start', id: 'r1' },
  { type: 'reasoning-delta', id: 'r1', delta: 'Look it ' },
  { type: 'reasoning-delta', id: 'r1', delta: 'up.' },
  { type: 'reasoning-end', id: 'r1' },
  { type: 'tool-input-start', toolCallId: 'c1', toolName: 'weather' },
  { type: 'tool-input-delta', toolCallId: 'c1', inputTextDelta: '{"city":' },
  { type: 'tool-input-delta', toolCallId: 'c1', inputTextDelta: '"Lyon"}' },
  { type: 'tool-input-available', toolCallId: 'c1', toolName: 'weather', input: { city: 'Lyon' } },
  { type: 'tool-output-available', toolCallId: 'c1', output: { degrees: 21 } },
  { type: 'finish-step' },
  { type: 'start-step' },
  { type: 'source-url', sourceId: 's1', url: 'https://example.com', title: 'Weather' },
  { type: 'data-plan', id: 'p1', data: { step: 1 } },
  { type: 'text-start', id: 't1' },
  { type: 'text-delta', id: 't1', delta: 'It is ' },
  { type: 'text-delta', id: 't1', delta: '21 °C\n\nin Lyon \u0000\ud83c\udf1e' },
  { type: 'text-end', id: 't1' },
  { type: 'finish-step' },
  { type: 'finish' },
]

/** The same as the SDK sends it. */
export const SSE_CHUNKS = [...CHUNKS.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`), 'data: [DONE]\n\n']
