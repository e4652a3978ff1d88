import type { Config } from '@annals/kits/configuration/config.js'
import { exposureWarnings } from '@annals/kits/configuration/exposure.js'
import { StartError } from '@annals/kits/errors.js'
import { defaultMemoryBytes } from '@annals/kits/fairness/fair_queue.js'
import { checkEmbeddedConnections, locateDatabase } from '@annals/kits/postgres/connection_target.js'
import { FirstWorkerFailed, findFreePort, Workers } from '@annals/kits/workers/primary.js'
import { findPrimary } from '@annals/kits/workers/worker.js'
import { createFirst, type PreparedDatabase } from 'annals/dist/service/prepare_database.js'
import type { Service } from 'annals/dist/service/service.js'
import { workOnDatabase } from '../database/work_on_database.js'

export type Running = Service & { workers?: number }

/** In addition to the time for requests in flight: to disconnect from the database. */
const STOP_MS_EXTRA = 5_000

/**
 * annals serve --workers: prepares the database once, then runs `count` processes. Undefined if the first of them did
 * not start; it has reported why, and the exit code is its.
 */
export async function serveByWorkers(
  config: Config,
  count: number,
  say: (sentence: string) => void,
): Promise<Running | undefined> {
  const prepared = await prepareDatabase(config, say, count)
  // If there is none, the first worker finds no other either, and says why.
  const port = config.port === 0 ? await findFreePort(config.host).catch(() => 0) : config.port
  const workers = new Workers({
    count,
    args: ['serve', '--worker'],
    env: {
      PORT: `${port}`,
      ANNALS_MEMORY_BYTES_MAX: `${config.memory_bytes_max || defaultMemoryBytes(count)}`,
    },
    stop_ms_max: config.drain_ms_max + STOP_MS_EXTRA,
    say,
  })
  try {
    const url = await workers.start()
    return {
      ...prepared,
      url,
      workers: count,
      ready_after_ms: Math.round(performance.now()),
      stop: async (delay_ms = 0) => {
        await workers.stop(delay_ms)
        await prepared.release()
      },
    }
  } catch (error) {
    await prepared.release()
    if (!(error instanceof FirstWorkerFailed)) throw error
    process.exitCode = error.exit_code
    return undefined
  }
}

/** annals serve --worker: one of these processes. `stopping` resolves with the signal that stops it. */
export async function serveAsWorker(
  config: Config,
  stopping: Promise<string>,
  say: (sentence: string) => void,
): Promise<void> {
  const primary = findPrimary()
  if (!primary)
    throw new StartError('--worker is only for processes started by `annals serve --workers`. Use that one.')
  const service = await import('annals/dist/service/service.js')
    .then(({ startService }) => startService(config, say, primary))
    .catch((error) => {
      void primary.leave()
      throw error
    })
  primary.tellReady(service.url)
  // A signal to this process alone is no rollout.
  await service.stop(await Promise.race([primary.ending, stopping.then(() => 0)]))
  await primary.leave()
  process.exit(0)
}

/**
 * Does once for several processes what each would do by itself, and keeps the database running for them until it is
 * released. @throws StartError also if the embedded server has too few connections for so many processes
 */
async function prepareDatabase(
  config: Config,
  onProgress: (sentence: string) => void,
  processes: number,
): Promise<PreparedDatabase> {
  checkEmbeddedConnections(config, processes)
  const location = await locateDatabase(config, onProgress)
  for (const warning of [...exposureWarnings(config), ...location.warnings]) onProgress(`Warning: ${warning}`)
  try {
    const created = await workOnDatabase(config, onProgress, (database) => createFirst(database, config))
    return { database: location.description, ...created, release: () => location.release() }
  } catch (error) {
    await location.release()
    throw error
  }
}
