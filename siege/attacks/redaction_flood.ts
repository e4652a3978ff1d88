import type { Attack } from '../attackers/attack.ts'
import { dataOf } from '../http.ts'

const LANES = 6
const BYTES = 1_000_000

/** Texts in which detectors begin to find something everywhere. */
const DEAR = [
  '4111 1111 1111 1112 ',
  '+4915112345678',
  'DE89 3704 0044 0532 0130 01 ',
  'a.b@c.d@e.f@',
  'sk-ant-api03-',
  'eyJhbGciOiJub25lIn0.',
  '-----BEGIN PRIVATE KEY-----\n',
  '{\\"a\\":\\"',
  'WVdGaFlXRmhZV0Zo',
  'AAAAAAAA',
  '1234567890',
  '{"a":["',
]

export const redactionFlood: Attack = {
  name: 'redaction-flood',
  does: 'appends texts of a megabyte to a project with redaction, in which detectors find a beginning everywhere',
  answers: [200, 201, 400, 413, 429, 503],
  async strike(ground) {
    const key = ground.target.redacted_key
    const made = await ground.ask({ method: 'POST', path: '/api/v1/session', key, body: {} })
    const id = dataOf<{ id: string }>(made)?.id
    if (id === undefined) return
    let next = 0
    await ground.lanes(LANES, () => {
      next += 1
      const dear = DEAR[next % DEAR.length]!
      const text = dear.repeat(Math.ceil(BYTES / dear.length)).slice(0, BYTES)
      const call = { id: 'a', type: 'function', function: { name: 'a', arguments: JSON.stringify({ text }) } }
      const blob = next % 2 ? { role: 'user', content: text } : { role: 'assistant', tool_calls: [call] }
      return ground.ask({ method: 'POST', path: `/api/v1/session/${id}/messages`, key, body: { blob } })
    })
  },
}
