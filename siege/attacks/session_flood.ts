import type { Attack } from '../attackers/attack.ts'

const LANES = 64

export const sessionFlood: Attack = {
  name: 'session-flood',
  does: 'creates sessions of ever new users, with configs of up to 60 KB, as fast as it can',
  answers: [201, 403, 429, 503],
  strike: (ground) =>
    ground.lanes(LANES, () => {
      const note = 'x'.repeat(ground.random.chance(0.1) ? 60_000 : 50)
      const body = { user: `user-${ground.random.integer(0, 1e9)}`, configs: { note } }
      return ground.ask({ method: 'POST', path: '/api/v1/session', key: ground.target.key, body })
    }),
}
