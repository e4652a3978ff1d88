import { Annals } from '@annals/client'
import { AnnalsSaver } from '@annals/langgraph'
import { deltaChannelHistoryTests, specTest } from '@langchain/langgraph-checkpoint-validation'
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
  type RunnerTask,
  type RunnerTestSuite,
} from 'vitest'
import { useSharedService } from '../../../../tests/harness/service.ts'

const service = useSharedService()

// The suite takes these from the global scope.
Object.assign(globalThis, { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it })

/** LangGraph's own suite, under a name for which it skips nothing. */
const initializer = {
  checkpointerName: '@annals/langgraph',
  createCheckpointer: async () => {
    const { token } = await service.newProject()
    return new AnnalsSaver(new Annals({ url: service.node.url, token }))
  },
}
specTest(initializer)
deltaChannelHistoryTests(initializer)

it('has 726 tests, and skips none', ({ task }) => {
  const testsOf = ({ tasks }: RunnerTestSuite): RunnerTask[] =>
    tasks.flatMap((one) => (one.type === 'suite' ? testsOf(one) : one))
  const modes = testsOf(task.file).map(({ mode }) => mode)
  expect(modes).toEqual(Array(727).fill('run'))
})
