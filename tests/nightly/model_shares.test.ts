import { describe, expect, it, vi } from 'vitest'
import type { Asked, Reply } from '../../lab/model_server.ts'
import { expectOk } from '../harness/expectations.ts'
import { agent, useModelProjects } from '../harness/model_project.ts'
import { useService } from '../harness/service.ts'
import { reasonForNoOwnDatabase } from '../harness/test_database.ts'

const service = useService({ ANNALS_MODEL_MS_MAX: '600000' })
const newModelProject = useModelProjects(service)

const HANGING_PROJECTS = 5
/** More than a project may have under way at once. */
const SPACES = 6
const UNDER_WAY_MAX = 4

// In a database that all files share, other nodes learn as well.
describe.skipIf(reasonForNoOwnDatabase())('models of projects', () => {
  it('that hang keep only their own projects waiting, each with four spaces at most', async () => {
    const silent = await Promise.all(
      Array.from({ length: HANGING_PROJECTS }, async () => {
        const made = await newModelProject(() => new Promise<Reply>(() => {}))
        for (let count = 0; count < SPACES; count++)
          await made.addRun(await made.newSpace('suggest'), 'ada', [agent('I hang.')], { reward: 1 })
        return made.model
      }),
    )
    // None is answered, so these are asked all at once: many more than may be worked on.
    await vi.waitFor(
      () => expect(silent.map(({ asked }) => asked.length)).toEqual(silent.map(() => UNDER_WAY_MAX)),
      60_000,
    )
    const { newSpace, addRun, reflected, model } = await newModelProject(() => ({
      answer: { statements: [] },
    }))
    const space = await newSpace('suggest')
    await reflected(space, await addRun(space, 'bob', [agent('I do not hang.')], { reward: 1 }))
    expect(model.asked).toHaveLength(1)
    expect(silent.map(({ asked }) => asked.length)).toEqual(silent.map(() => UNDER_WAY_MAX))
  })

  it('are asked the same question of a curator once, whichever sessions lead to it', async () => {
    const script = ({ step }: Asked): Reply => {
      if (step === 'curate')
        return { answer: { decisions: [{ candidate: 0, action: 'support', statement: 0 }] } }
      const cites = [{ run: 'A', seq: 1, quote: 'I have seen it' }]
      return { answer: { statements: [{ kind: 'fact', text: 'Gates close early.', tool: null, cites }] } }
    }
    const { newSpace, addRun, reflected, statementsOf, model, api } = await newModelProject(script)
    const space = await newSpace('suggest')
    for (const text of [
      'I have seen it.',
      'I have seen it twice.',
      'I have seen it again.',
      'I have seen it last.',
    ])
      await reflected(space, await addRun(space, 'ada', [agent(text)]))
    expect(model.asked.map(({ step }) => step)).toEqual([
      'reflect',
      ...['reflect', 'curate'],
      ...['reflect', 'reflect'],
    ])
    // What was answered once serves each of them.
    expect(await statementsOf(space)).toMatchObject([{ text: 'Gates close early.', supports: 4 }])
    const usage = expectOk(
      await api.request<{ days: { step: string; calls: number }[] }>(
        'GET',
        `/api/v1/learning_spaces/${space}/usage`,
      ),
    )
    expect(usage.days.map(({ step, calls }) => [step, calls])).toEqual([
      ['curate', 1],
      ['reflect', 4],
    ])
  })
})
