import type { Module } from '@annals/kits/module.js'
import type { WorkThread } from '@annals/kits/threads/work_thread.js'
import { LOG_MODULE } from '../log/module.js'
import { PROJECTS_MODULE } from '../projects/module.js'
import { type OtelWork, otelThread } from './otel_on_thread.js'

/** Stores OpenTelemetry's spans and logs by appending to sessions. It has no tables of its own. */
export const OTEL_MODULE: Module = {
  name: 'otel',
  tables: [],
  open: ({ config, thread: bodies }, opened) => {
    const { appender } = opened(LOG_MODULE)
    const { usage } = opened(PROJECTS_MODULE)
    let thread: WorkThread<OtelWork> | undefined
    return {
      routes: async () => {
        thread = otelThread()
        return (await import('./otel_routes.js')).otelRoutes({ config, appender, usage, thread, bodies })
      },
      close: () => thread?.close(),
    }
  },
}
