import type { Attack } from '../attackers/attack.ts'
import { repeated, repeatedInUrl, TEXTS } from './shapes.ts'

const LANES = 8
const FIELD_BYTES = 1_000_000
const URL_CHARACTERS = 15_000

export const hostileNamesWithoutKey: Attack = {
  name: 'hostile-names-no-key',
  does: 'names of fields of 1 MB at the sign-in of the console, and names of parameters of 15 KB, without a key',
  answers: [200, 400, 401, 403, 404, 405, 413, 415, 429, 503],
  async strike(ground) {
    const paths = [
      '/console/sign_in',
      '/console',
      '/health',
      '/ready',
      '/api/v1/session',
      '/docs',
      '/metrics',
    ]
    let turn = 0
    await ground.lanes(LANES, async () => {
      turn += 1
      const text = TEXTS[Math.floor(turn / 2) % TEXTS.length]!
      if (turn % 2 === 0) {
        const body = { [repeated(text, FIELD_BYTES)]: 1 }
        await ground.ask({ method: 'POST', path: '/console/sign_in', body })
      } else {
        const name = repeatedInUrl(text, URL_CHARACTERS)
        await ground.ask({ path: `${ground.random.pick(paths)}?${name}=1` })
      }
    })
  },
}
