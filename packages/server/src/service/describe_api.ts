import { pino } from 'pino'
import { readConfig } from '../configuration/config.js'
import { buildApp } from '../http/app.js'
import { describeOperations } from '../http/openapi/openapi.js'
import { Erasure } from '../lifecycle/erase/erasure.js'
import { registryOf } from '../lifecycle/registry.js'
import { MODULES } from './modules.js'
import { loadRoutes } from './service.js'

/** The API's OpenAPI description, made without a database, for the build. */
export async function describeApi(): Promise<object> {
  const config = readConfig({ ANNALS_ADMIN_TOKEN: 'x'.repeat(32) })
  // This app never gets a request, so its parts are never used.
  const unused = {} as never
  const logger = pino({ level: 'silent' })
  const registry = registryOf(MODULES)
  const parts = {
    registry,
    erasure: new Erasure(registry.tables),
    metrics: unused,
    database: { of: () => unused } as never,
    reserved: unused,
    longWork: unused,
    thread: unused,
    memory: unused,
    appender: unused,
    changes: unused,
    tokens: unused,
    assets: unused,
    feed: unused,
    usage: unused,
    heartbeat: unused,
  }
  const modules = await loadRoutes(MODULES)
  const operations: Parameters<typeof describeOperations>[0] = []
  await buildApp({ config, logger, ...parts, isServing: () => false }, modules, (route) => {
    if (route.schema?.tags && route.method !== 'HEAD') operations.push(route)
  })
  return describeOperations(operations, modules)
}
