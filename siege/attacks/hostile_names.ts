import { operations } from '../../fuzz/document.ts'
import type { Attack } from '../attackers/attack.ts'
import { repeated, repeatedInUrl, TEXTS } from './shapes.ts'

const LANES = 8
const FIELD_BYTES = 500_000
const QUERY_CHARACTERS = 15_000
const NOBODYS_ID = '01890a5d-ac96-774b-bcce-b302099a8057'

const ours = operations.filter(({ admin }) => !admin)

export const hostileNames: Attack = {
  name: 'hostile-names',
  does: 'names of fields of 500 KB and of parameters of 15 KB at every operation, with a key',
  // 403: its key has not the scope of every operation.
  answers: [200, 400, 403, 404, 405, 413, 415, 429, 503],
  async strike(ground) {
    const { key, long_session } = ground.target
    let turn = -1
    await ground.lanes(LANES, () => {
      turn += 1
      const operation = ours[turn % ours.length]!
      const text = TEXTS[Math.floor(turn / ours.length) % TEXTS.length]!
      const { method } = operation
      const session = method === 'DELETE' || operation.body === undefined ? NOBODYS_ID : long_session
      const path = operation.path.replace('{session_id}', session).replaceAll(/\{\w+\}/g, NOBODYS_ID)
      if (operation.body) return ground.ask({ method, path, key, body: { [repeated(text, FIELD_BYTES)]: 1 } })
      return ground.ask({ method, path: `${path}?${repeatedInUrl(text, QUERY_CHARACTERS)}=1`, key })
    })
  },
}
