import { operations } from '../../fuzz/document.ts'
import type { Attack } from '../attackers/attack.ts'
import type { Call } from '../http.ts'
import { repeated, SHAPES } from './shapes.ts'
import { FORMATS } from './stalled_readers.ts'

const LANES = 8
const VALUE_BYTES = 500_000
const URL_CHARACTERS = 15_000

type Hostile = (shape: string, session: string) => Call

const post = (path: string, body: unknown): Call => ({ method: 'POST', path, body })

/** Every place of a body that takes a text of the caller's. */
const IN_BODIES: Hostile[] = [
  (shape) => post('/api/v1/session', { user: repeated(shape, VALUE_BYTES) }),
  (shape) => post('/api/v1/session', { use_uuid: repeated(shape, VALUE_BYTES) }),
  (shape) => post('/api/v1/session', { configs: { text: repeated(shape, 60_000) } }),
  (shape) => post('/api/v1/session', { configs: { [repeated(shape, 60_000)]: 1 } }),
  (shape) => post('/api/v1/learning_spaces', { user: repeated(shape, VALUE_BYTES) }),
  (shape, session) => post(`${session}/events`, { type: repeated(shape, VALUE_BYTES), data: {} }),
  (shape, session) =>
    post(`${session}/events`, { type: 'note', data: { text: repeated(shape, VALUE_BYTES) } }),
  (shape, session) =>
    post(`${session}/events`, { type: 'note', data: { [repeated(shape, VALUE_BYTES)]: 1 } }),
  (shape, session) =>
    post(`${session}/messages`, { blob: { role: repeated(shape, VALUE_BYTES), content: 'a' } }),
  (shape, session) => post(`${session}/messages`, { format: repeated(shape, VALUE_BYTES), blob: {} }),
  (shape, session) =>
    post(`${session}/messages`, { blob: { role: 'user', content: repeated(shape, VALUE_BYTES) } }),
  (shape, session) =>
    post(`${session}/messages`, {
      blob: { role: 'user', content: 'a' },
      meta: { text: repeated(shape, 60_000) },
    }),
  (shape, session) =>
    post(`${session}/messages`, {
      blob: {
        role: 'assistant',
        tool_calls: [
          { id: 'a', type: 'function', function: { name: 'a', arguments: repeated(shape, VALUE_BYTES) } },
        ],
      },
    }),
  (shape, session) =>
    post(`${session}/entries`, { entries: [{ kind: repeated(shape, VALUE_BYTES), type: 'note', data: {} }] }),
]

const readable = operations.filter(({ method, admin }) => method === 'GET' && !admin)

/** Every parameter of every operation that reads, and the ids in their paths. */
const IN_URLS: Hostile[] = readable.flatMap(({ path, parameters }) =>
  parameters
    .filter((parameter) => parameter.in !== 'header')
    .map(
      ({ name, in: place }): Hostile =>
        (shape, session) => {
          const encoded = encodeURIComponent(shape)
          const value = encoded.repeat(Math.floor(URL_CHARACTERS / encoded.length))
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
      (_shape, session) => ({ path: `${session}/messages?format=${format}&limit=5&time_desc=true` }),
  ),
  (_shape, session) => ({ path: `${session}/token_counts` }),
]

export const hostileValues: Attack = {
  name: 'hostile-values',
  does: 'values of 500 KB in every field, and of 15 KB in every parameter, with a key',
  answers: [200, 201, 400, 404, 409, 413, 415, 429, 431, 503],
  seconds: 5,
  async strike(ground) {
    const { key, long_session } = ground.target
    const turns = ground.random.shuffled(
      [...IN_BODIES, ...IN_BODIES, ...IN_URLS, ...READS].flatMap((make) =>
        Object.values(SHAPES).map((shape) => ({ make, shape })),
      ),
    )
    await ground.lanes(LANES, () => {
      const { make, shape } = turns.pop() ?? { make: ground.random.pick(IN_BODIES), shape: ' ' }
      return ground.ask({ ...make(shape, `/api/v1/session/${long_session}`), key })
    })
  },
}
