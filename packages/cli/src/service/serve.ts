import { setFlagsFromString } from 'node:v8'
import { type Config, describeSettings, readConfig } from '@annals/kits/configuration/config.js'
import { Command, InvalidArgumentError, Option } from 'commander'
import { tellProgress } from '../database/with_database.js'
import { goOnWithoutOutput } from '../run_command.js'
import { commandLine } from '../terminal/command_name.js'
import { onInterrupt } from '../terminal/interrupt.js'
import type { Running } from './serve_workers.js'
import { forgetAddress, keepAddress } from './service_address.js'

const WORKERS_MAX = 128

/** annals serve */
export function serveCommand(): Command {
  return new Command('serve')
    .description('Run the service, with its own embedded PostgreSQL unless DATABASE_URL names a server.')
    .option(
      '--workers <count>',
      'run this many processes on one port, and replace any that dies',
      parseWorkers,
    )
    .addOption(new Option('--worker').hideHelp())
    .addHelpText(
      'after',
      `\nEnvironment:\n${settingsTable()}\n\nExamples:\n  PORT=8080 annals serve\n  annals serve --workers 4`,
    )
    .action(async (options: { workers?: number; worker?: boolean }) => {
      goOnWithoutOutput()
      tuneGarbageCollection()
      const stopping = new Promise<string>((resolve) => {
        let isStopping = false
        const stop = (reason: string) => {
          // Said at once: a start is finished first, and may wait for a database.
          if (!options.worker && !isStopping)
            process.stderr.write(`${reason}: answering the accepted requests, then stopping.\n`)
          isStopping = true
          resolve(reason)
        }
        onInterrupt(stop)
        onEndOfNpm(stop)
      })
      const config = readServiceConfig(process.env)
      if (options.worker) {
        const { serveAsWorker } = await import('./serve_workers.js')
        return serveAsWorker(config, stopping, tellProgress)
      }
      // A person who meant another port has no database to clean up then, and has replaced no key of a running service.
      await (await import('@annals/kits/http/app_server.js')).refuseTakenPort(config)
      const running = options.workers
        ? await (await import('./serve_workers.js')).serveByWorkers(config, options.workers, tellProgress)
        : await (await import('annals/dist/service/service.js')).startService(config, tellProgress)
      if (!running) return
      if (config.database_url === undefined) keepAddress(config.data_dir, running.url)
      process.stdout.write(banner(running))
      // On Ctrl-C, no load balancer has to notice.
      const delay_ms = (await stopping) === 'SIGTERM' ? config.shutdown_delay_ms : 0
      if (config.database_url === undefined) forgetAddress(config.data_dir, running.url)
      await running.stop(delay_ms)
      // Nothing is left to do; a forgotten connection must not keep the process alive.
      process.exit(0)
    })
}

const NPM_MS = 500

/** Calls `stop` once `npm start` was killed, which passes on no signal: what it started would hold the port. */
function onEndOfNpm(stop: (reason: string) => void): void {
  const { npm_lifecycle_event, npm_package_name } = process.env
  if (npm_lifecycle_event !== 'start' || npm_package_name !== 'annals-workspace') return
  const npm = process.ppid
  const watch = setInterval(() => {
    if (process.ppid === npm) return
    clearInterval(watch)
    stop('npm has ended')
  }, NPM_MS)
  watch.unref()
}

/**
 * V8 lets the old generation grow up to fourfold between two collections; here it may double. Under load, the process
 * then takes a quarter less memory and is no slower: `npm run bench -- by-hand` shows both.
 *
 * V8 also creates objects in the old generation right away where many of the same kind have lasted. Those of a flush last
 * while the database stores it, and as old garbage they keep all that they refer to: each request's garbage grew old, and
 * an append took a sixth more processor time.
 */
function tuneGarbageCollection(): void {
  setFlagsFromString('--heap-growing-percent=100')
  setFlagsFromString('--no-allocation-site-pretenuring')
}

/** The number of workers. */
export function parseWorkers(text: string): number {
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (count < 1 || count > WORKERS_MAX)
    throw new InvalidArgumentError(`It must be a number from 1 to ${WORKERS_MAX}.`)
  return count
}

/** The next steps for a person, short enough not to scroll away. */
function banner({ url, database, api_key, sign_in_code, ready_after_ms, workers }: Running): string {
  const lines = ['', `Annals is ready at ${url}`, '']
  if (api_key !== undefined) lines.push(`API key: ${api_key}`)
  lines.push(`Console: ${url}/console${sign_in_code === undefined ? '' : `#code=${sign_in_code}`}`)
  lines.push(`Data:    ${database}${workers ? `, ${workers} workers` : ''}`)
  lines.push(`Try it:  ${api_key === undefined ? commandLine(['sessions', 'list']) : commandLine(['demo'])}`)
  const keys =
    api_key === undefined
      ? `\`${commandLine(['key'])}\` creates another API key.`
      : `The key is shown only once; \`${commandLine(['key'])}\` creates another.`
  return `${lines.join('\n')}\n\nReady after ${ready_after_ms} ms. ${keys} Ctrl-C stops Annals.\n`
}

/** On a terminal, a line for each request would push the API key out of sight. */
function readServiceConfig(env: NodeJS.ProcessEnv): Config {
  const quiet = process.stderr.isTTY && !env.LOG_LEVEL
  return readConfig(quiet ? { ...env, LOG_LEVEL: 'warn' } : env)
}

function settingsTable(): string {
  const rows = describeSettings()
  const width = Math.max(...rows.map((row) => row.variable.length))
  return rows
    .map((row) => `  ${row.variable.padEnd(width)}  ${row.meaning}${row.default ? ` [${row.default}]` : ''}`)
    .join('\n')
}
