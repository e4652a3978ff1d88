import { readConfig } from '@annals/kits/configuration/config.js'
import { Metrics } from '@annals/kits/metrics/metrics.js'
import { openPools, type Undo } from 'annals/dist/service/kits.js'
import { MODULES } from 'annals/dist/service/modules.js'
import { openApp, undoAll } from 'annals/dist/service/service.js'
import { pino } from 'pino'
import { describeOperations } from './openapi.js'

/** Has the operator's API described, too. */
const WITH_OPERATOR = { ANNALS_ADMIN_TOKEN: 'x'.repeat(32) }

/** The API's OpenAPI description, for the build. Its pools connect to nothing, as nobody sends a request. */
export async function describeApi(modules = MODULES): Promise<object> {
  const config = readConfig(WITH_OPERATOR)
  const logger = pino({ level: 'silent' })
  const undo: Undo = []
  const target = { target: { connectionString: 'postgresql://nowhere.invalid' }, listening: undefined }
  const opening = { config, modules, target, logger, metrics: new Metrics(), undo }
  const operations: Parameters<typeof describeOperations>[0] = []
  const state = { worker: undefined, isReady: () => true, isServing: () => true }
  try {
    const { routes } = await openApp(opening, openPools(opening), state, false, (route) => {
      if (route.schema?.tags && route.method !== 'HEAD') operations.push(route)
    })
    return await describeOperations(operations, routes)
  } finally {
    await undoAll(undo, logger)
  }
}
