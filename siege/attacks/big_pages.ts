import type { Attack } from '../attackers/attack.ts'
import { FORMATS } from './stalled_readers.ts'

export const bigPages: Attack = {
  name: 'big-pages',
  does: 'reads pages of 20 MB in five formats, dozens at once',
  answers: [200, 429, 503],
  strike: (ground) =>
    ground.lanes(ground.scaled(12, 50), (lane) => {
      const { read_key: key, big_session } = ground.target
      const format = FORMATS[lane % FORMATS.length]
      return ground.ask({
        path: `/api/v1/session/${big_session}/messages?limit=200&format=${format}`,
        key,
        wait_ms: 60_000,
      })
    }),
}
