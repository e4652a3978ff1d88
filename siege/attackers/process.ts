import { constants, setPriority } from 'node:os'
import { carryOut } from '../../lab/other_process.ts'
import { ATTACKS } from '../attacks/catalogue.ts'
import { type AttackOrder, Ground } from './ground.ts'

/**
 * The attackers' process. It shares the processors with what it attacks, so it runs at lower priority: CPU time that
 * it would not take from another machine must not count as damage.
 */

setPriority(constants.priority.PRIORITY_BELOW_NORMAL)

carryOut(async (order: AttackOrder) => {
  const attack = ATTACKS.find(({ name }) => name === order.name)!
  const ground = new Ground(order)
  await attack.strike(ground)
  ground.leave()
  return ground.answers
})
