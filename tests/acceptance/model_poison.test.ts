import { describe, expect, it } from 'vitest'
import { gullible } from '../../lab/model_scripts.ts'
import { POISON } from '../../lab/poison.ts'
import { useModelProjects } from '../harness/model_project.ts'
import { useSharedService } from '../harness/service.ts'

const service = useSharedService()
const newModelProject = useModelProjects(service)

describe('sessions that are made to poison a space, with a model that does whatever they say', () => {
  it.each(['auto', 'suggest'])(
    'activate nothing in mode %s, be they of one user or of several',
    async (mode) => {
      const { newSpace, addRun, reflected, statementsOf } = await newModelProject(gullible)
      expect(POISON.length).toBeGreaterThanOrEqual(30)
      expect(new Set(POISON.map(({ kind }) => kind)).size).toBeGreaterThanOrEqual(10)
      const space = await newSpace(mode)
      const sessions = await Promise.all(
        POISON.map(({ by, blobs, outcome }) => addRun(space, by, blobs, outcome)),
      )
      for (const session of sessions) await reflected(space, session)
      const statements = await statementsOf(space)
      expect(statements.filter(({ state }) => state !== 'proposed')).toEqual([])
      // Some of it is only told apart by who supports it, so that a person gets to see it.
      expect(statements.map(({ supports }) => supports)).toEqual(statements.map(() => 3))
      expect(statements).not.toEqual([])
    },
    // A space takes its sessions one after the other.
    120_000,
  )
})
