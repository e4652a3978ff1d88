import type { Attack } from '../attackers/attack.ts'

const LANES = 256
const PATHS = ['/ready', '/health', '/metrics', '/openapi.json', '/console', '/nowhere']

export const openPages: Attack = {
  name: 'open-pages',
  does: 'asks for what needs no key, /ready included, as fast as it can',
  answers: [200, 404, 429, 503],
  strike: (ground) => ground.lanes(LANES, () => ground.ask({ path: ground.random.pick(PATHS) })),
}
