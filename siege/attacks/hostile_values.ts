import { operations } from '../../fuzz/document.ts'
import type { Attack } from '../attackers/attack.ts'
import type { Call } from '../http.ts'
import { repeated, repeatedInUrl, TEXTS, type Text } from './shapes.ts'
import { FORMATS } from './stalled_readers.ts'

const LANES = 8
const VALUE_BYTES = 500_000
const URL_CHARACTERS = 15_000

type Hostile = (text: Text, session: string) => Call

const post = (path: string, body: unknown): Call => ({ method: 'POST', path, body })

/** Every place of a body that takes a text of the caller's. */
const IN_BODIES: Hostile[] = [
  (text) => post('/api/v1/session', { user: repeated(text, VALUE_BYTES) }),
  (text) => post('/api/v1/session', { use_uuid: repeated(text, VALUE_BYTES) }),
  (text) => post('/api/v1/session', { configs: { text: repeated(text, 60_000) } }),
  (text) => post('/api/v1/session', { configs: { [repeated(text, 60_000)]: 1 } }),
  (text) => post('/api/v1/learning_spaces', { user: repeated(text, VALUE_BYTES) }),
  (text, session) => post(`${session}/events`, { type: repeated(text, VALUE_BYTES), data: {} }),
  (text, session) => post(`${session}/events`, { type: 'note', data: { text: repeated(text, VALUE_BYTES) } }),
  (text, session) => post(`${session}/events`, { type: 'note', data: { [repeated(text, VALUE_BYTES)]: 1 } }),
  (text, session) =>
    post(`${session}/messages`, { blob: { role: repeated(text, VALUE_BYTES), content: 'a' } }),
  (text, session) => post(`${session}/messages`, { format: repeated(text, VALUE_BYTES), blob: {} }),
  (text, session) =>
    post(`${session}/messages`, { blob: { role: 'user', content: repeated(text, VALUE_BYTES) } }),
  (text, session) =>
    post(`${session}/messages`, {
      blob: { role: 'user', content: 'a' },
      meta: { text: repeated(text, 60_000) },
    }),
  (text, session) =>
    post(`${session}/messages`, {
      blob: {
        role: 'assistant',
        tool_calls: [
          { id: 'a', type: 'function', function: { name: 'a', arguments: repeated(text, VALUE_BYTES) } },
        ],
      },
    }),
  (text, session) =>
    post(`${session}/entries`, { entries: [{ kind: repeated(text, VALUE_BYTES), type: 'note', data: {} }] }),
]

const readable = operations.filter(({ method, admin }) => method === 'GET' && !admin)

/** Every parameter of every operation that reads, and the ids in their paths. */
const IN_URLS: Hostile[] = readable.flatMap(({ path, parameters }) =>
  parameters
    .filter((parameter) => parameter.in !== 'header')
    .map(
      ({ name, in: place }): Hostile =>
        (text, session) => {
          const value = repeatedInUrl(text, URL_CHARACTERS)
          const bound = path.replace(place === 'path' ? `{${name}}` : '', place === 'path' ? value : '')
          const [, id] = session.split('/session/')
          const ready = bound.replace('{session_id}', id!).replaceAll(/\{\w+\}/g, id!)
          return { path: place === 'path' ? ready : `${ready}?${name}=${value}` }
        },
    ),
)

/** What was stored comes back through everything that reads it. */
const READS: Hostile[] = [
  ...FORMATS.map(
    (format): Hostile =>
      (_text, session) => ({ path: `${session}/messages?format=${format}&limit=5&time_desc=true` }),
  ),
  (_text, session) => ({ path: `${session}/token_counts` }),
]

export const hostileValues: Attack = {
  name: 'hostile-values',
  does: 'values of 500 KB in every field, and of 15 KB in every parameter, with a key',
  answers: [200, 201, 400, 404, 409, 413, 415, 429, 431, 503],
  seconds: 4,
  async strike(ground) {
    const { key, long_session } = ground.target
    const places = [...IN_BODIES, ...IN_URLS, ...READS]
    let turn = -1
    await ground.lanes(LANES, () => {
      turn += 1
      const make = places[turn % places.length]!
      const text = TEXTS[Math.floor(turn / places.length) % TEXTS.length]!
      return ground.ask({ ...make(text, `/api/v1/session/${long_session}`), key })
    })
  },
}
