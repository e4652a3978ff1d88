import { expect, it } from 'vitest'
import { gullible } from '../../lab/model_scripts.ts'
import { expectOk } from '../harness/expectations.ts'
import { agent, planted, useModelProjects, user } from '../harness/model_project.ts'
import { useSharedService } from '../harness/service.ts'

const newModelProject = useModelProjects(useSharedService())

const FACT = 'Refunds of basic fares need an insurance.'
const run = (letter = 'A') => {
  const cites = [{ run: letter, seq: 1, quote: 'I looked it up' }]
  return [agent('I looked it up'), user(planted({ kind: 'fact', text: FACT, tool: null, cites }))]
}

it('a copy of a session supports nothing that the session has supported', { timeout: 120_000 }, async () => {
  const { api, newSpace, addRun, reflected, statementsOf, post } = await newModelProject(gullible)
  const own = await newSpace('auto', { user: 'ada' })
  const session = await reflected(own, await addRun(own, 'ada', run()))
  const copyOf = async (id: string, body: object) =>
    expectOk(
      await api.request<{ new_session_id: string }>('POST', `/api/v1/session/${id}/copy`, { body }),
      200,
    ).new_session_id
  const learn = async (space: string, session_id: string) => {
    expectOk(await post(`/learning_spaces/${space}/learn`, { session_id, now: true }), 201)
    await reflected(space, session_id)
  }
  const states = async (space: string) =>
    (await statementsOf(space)).map(({ state, supports }) => `${state} ${supports}`)
  const copy = await copyOf(session, { user: 'ada' })
  await learn(own, copy)
  await learn(own, await copyOf(copy, { user: 'ada' }))
  expect(await states(own)).toEqual(['proposed 3'])
  await reflected(own, await addRun(own, 'ada', run()))
  expect(await states(own)).toEqual(['active 4'])
  const shared = await newSpace('auto')
  await learn(shared, session)
  await learn(shared, await copyOf(session, { user: 'bob' }))
  expect(await states(shared)).toEqual(['proposed 2'])
})

it('a session that belongs to nobody stands for no second user', { timeout: 120_000 }, async () => {
  const { newSpace, addRun, reflected, statementsOf } = await newModelProject(gullible)
  const space = await newSpace('auto')
  await reflected(space, await addRun(space, 'ada', run()))
  await reflected(space, await addRun(space, undefined, run()))
  expect(await statementsOf(space)).toMatchObject([{ state: 'proposed', supports: 2 }])
  await reflected(space, await addRun(space, 'bob', run()))
  expect(await statementsOf(space)).toMatchObject([{ state: 'active', supports: 3 }])
})
