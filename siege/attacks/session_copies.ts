import type { Attack } from '../attackers/attack.ts'

export const sessionCopies: Attack = {
  name: 'session-copies',
  does: 'copies a long session, 16 to 40 times at once',
  answers: [200, 201, 403, 429, 503],
  seconds: 5,
  strike: (ground) =>
    ground.lanes(ground.scaled(16, 40), () => {
      const { key, long_session } = ground.target
      return ground.ask({
        method: 'POST',
        path: `/api/v1/session/${long_session}/copy`,
        key,
        wait_ms: 60_000,
      })
    }),
}
