import type { Attack } from '../attackers/attack.ts'

const LANES = 64

export const signInGuesses: Attack = {
  name: 'sign-in-guesses',
  does: 'guesses codes for the sign-in of the console, without a key',
  answers: [400, 401, 403, 429, 503],
  strike: (ground) =>
    ground.lanes(LANES, () => {
      const code = ground.random.integer(1e12, 1e13).toString(36).repeat(4)
      return ground.ask({ method: 'POST', path: '/console/sign_in', body: { code } })
    }),
}
