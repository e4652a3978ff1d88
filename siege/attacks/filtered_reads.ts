import type { Attack } from '../attackers/attack.ts'

export const filteredReads: Attack = {
  name: 'filtered-reads',
  does: 'looks for a type that no event of a long session has, dozens of times at once, with a key that only reads',
  answers: [200, 429, 503],
  strike: (ground) =>
    ground.lanes(ground.scaled(24, 64), (lane) => {
      const { read_key: key, long_session } = ground.target
      const resource = lane % 2 === 0 ? 'events' : 'timeline'
      return ground.ask({
        path: `/api/v1/session/${long_session}/${resource}?type=nomatch`,
        key,
        wait_ms: 60_000,
      })
    }),
}
