import { Heartbeat } from '@annals/kits/http/answer/heartbeat.js'
import type { Module, OpenModule } from '@annals/kits/module.js'
import { PostgresBell, SILENT_BELL } from '@annals/kits/postgres/postgres_bell.js'
import { BLOBS_MODULE } from '../blobs/module.js'
import { PROJECTS_MODULE } from '../projects/module.js'
import { Appender } from './append/appender.js'
import { Feed } from './follow/feed.js'

/** Share of the memory that waiting appends may use: what they sent counts to their project as well. */
const QUEUE_SHARE = 1 / 4

export interface Log extends OpenModule {
  appender: Appender
  feed: Feed
  heartbeat: Heartbeat
}

/** Appending to, reading and following the log. Its tables are those of sessions. */
export const LOG_MODULE: Module<Log> = {
  name: 'log',
  tables: [],
  open: (kits, opened) => {
    const { config, database, appends, reserved, memory, metrics, tracing, listening, thread } = kits
    const { usage } = opened(PROJECTS_MODULE)
    const { urls } = opened(BLOBS_MODULE)
    const bell = listening ? new PostgresBell(listening) : SILENT_BELL
    const feed = new Feed(database.of('feed'), bell, config.feed_poll_ms)
    const heartbeat = new Heartbeat()
    const appender = new Appender({
      ...config,
      queue_bytes_max: Math.min(config.queue_bytes_max, memory.places_max * QUEUE_SHARE),
      wait_ms_max: config.database_wait_ms_max,
      database: appends,
      machineOf: reserved.distributed ? (project_id) => appends.machineOf(project_id) : undefined,
      onAppended: feed.appended.bind(feed),
      onStored: usage.stored.bind(usage),
      onFlush: metrics.flushed.bind(metrics),
      onTrouble: (trouble) => {
        metrics.flushTroubled(trouble)
        tracing?.flushTroubled(trouble)
      },
      originOf: tracing && (() => tracing.origin()),
      aroundFlush: tracing && ((taken, run) => tracing.flush(taken, run)),
    })
    metrics.watchLog(appender, feed)
    usage.watchTails((project_id) => feed.tailsOf(project_id))
    return {
      appender,
      feed,
      heartbeat,
      routes: async () =>
        (await import('./all_log_routes.js')).logRoutes({
          appender,
          feed,
          heartbeat,
          usage,
          urls,
          thread,
          config,
        }),
      close: async () => {
        appender.close()
        heartbeat.close()
        await bell.close()
      },
    }
  },
}
