import { type Annals, AnnalsError } from '@annals/client'
import { describe, expect, it } from 'vitest'
import { knownUsers } from '../src/client/user_names.ts'

function refusing(status: number, error: string): Annals {
  const refuse = () => Promise.reject(new AnnalsError({ status, error, message: error }))
  return { users: { list: () => ({ page: refuse }) } } as unknown as Annals
}

describe('names of users', () => {
  it('are done without, where the key may not list them', async () => {
    expect(await knownUsers(refusing(403, 'insufficient_scope'))).toEqual(new Map())
  })

  it('are not waited for by a list that would wait as long for the same service', async () => {
    await expect(knownUsers(refusing(0, 'timeout'))).rejects.toThrow('timeout')
  })
})
