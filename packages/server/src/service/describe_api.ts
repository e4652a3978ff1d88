import { pino } from 'pino'
import { readConfig } from '../configuration/config.js'
import { describeOperations } from '../http/openapi/openapi.js'
import { Erasure } from '../lifecycle/erase/erasure.js'
import { registryOf } from '../lifecycle/registry.js'
import { buildApp } from './app.js'
import { MODULES } from './modules.js'
import { loadRoutes } from './service.js'
import type { AppParts } from './service_context.js'

/** The API's OpenAPI description, made without a database, for the build. */
export async function describeApi(): Promise<object> {
  const config = readConfig({ ANNALS_ADMIN_TOKEN: 'x'.repeat(32) })
  const registry = registryOf(MODULES)
  const modules = await loadRoutes(MODULES)
  // What only requests need is left out: this app never gets one.
  const parts = {
    config,
    logger: pino({ level: 'silent' }),
    registry,
    erasure: new Erasure(registry.tables),
    metrics: {},
    database: { of: () => undefined },
  } as unknown as AppParts
  const operations: Parameters<typeof describeOperations>[0] = []
  await buildApp(parts, modules, (route) => {
    if (route.schema?.tags && route.method !== 'HEAD') operations.push(route)
  })
  return describeOperations(operations, modules)
}
