import type { Attack } from '../attackers/attack.ts'

export const filteredLists: Attack = {
  name: 'filtered-lists',
  does: 'lists sessions by values that are common each and rare together, dozens of times at once',
  answers: [200, 429, 503],
  strike: (ground) =>
    ground.lanes(ground.scaled(24, 64), () => {
      const { read_key: key } = ground.target
      const filter = { agent: `agent-${ground.random.integer(0, 6)}`, note: 'x'.repeat(100), run: -1 }
      if (ground.random.chance(0.5)) filter.run = ground.random.integer(0, 2_000)
      const query = `filter_by_configs=${encodeURIComponent(JSON.stringify(filter))}&limit=200`
      return ground.ask({ path: `/api/v1/session?${query}`, key })
    }),
}
