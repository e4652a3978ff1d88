import { Command, InvalidArgumentError, Option } from 'commander'
import type { Running } from '../../cluster/serve_workers.js'
import { describeSettings, readConfig } from '../../configuration/config.js'
import { tellProgress } from '../database/with_database.js'
import { goOnWithoutOutput } from '../run_command.js'
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
      const stopping = stopSignal()
      const config = readConfig(process.env)
      if (options.worker) {
        const { serveAsWorker } = await import('../../cluster/serve_workers.js')
        return serveAsWorker(config, stopping, tellProgress)
      }
      const running = options.workers
        ? await (await import('../../cluster/serve_workers.js')).serveByWorkers(
            config,
            options.workers,
            tellProgress,
          )
        : await (await import('../../service/service.js')).startService(config, tellProgress)
      if (!running) return
      if (config.database_url === undefined) keepAddress(config.data_dir, running.url)
      process.stdout.write(banner(running))
      const signal = await stopping
      process.stderr.write(`${signal}: answering the accepted requests, then stopping.\n`)
      if (config.database_url === undefined) forgetAddress(config.data_dir, running.url)
      await running.stop()
      // Nothing is left to do; a forgotten connection must not keep the process alive.
      process.exit(0)
    })
}

/** The number of workers. */
export function parseWorkers(text: string): number {
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (count < 1 || count > WORKERS_MAX)
    throw new InvalidArgumentError(`It must be a number from 1 to ${WORKERS_MAX}.`)
  return count
}

/** Resolves at the first SIGTERM or SIGINT. A second one ends the process at once. */
function stopSignal(): Promise<string> {
  return new Promise((resolve) => {
    let signalled = false
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (signalled) process.exit(130)
        signalled = true
        resolve(signal)
      })
    }
  })
}

function banner({ url, database, api_key, sign_in_code, ready_after_ms, workers }: Running): string {
  const console_url = sign_in_code === undefined ? `${url}/console` : `${url}/console#code=${sign_in_code}`
  const lines = [
    '',
    `Annals is ready at ${url}`,
    `  database   ${database}`,
    `  reference  ${url}/docs`,
    `  console    ${console_url}`,
  ]
  if (workers) lines.push(`  workers    ${workers}`)
  lines.push('')
  if (api_key !== undefined) {
    lines.push(
      `API key: ${api_key}`,
      'It is for the project "default" and is shown only once. Try it:',
      '',
      `curl -s ${url}/api/v1/session -H 'Authorization: Bearer ${api_key}' -H 'Content-Type: application/json' -d '{"user":"alice","configs":{"agent":"demo"}}'`,
      '',
      'Add demo sessions, in another terminal: npx annals demo',
    )
  } else {
    lines.push(
      'Create another API key: npx annals token create --project default --name NAME',
      'Readiness check:',
      '',
      `curl -s ${url}/ready`,
    )
  }
  return `${lines.join('\n')}\n\nReady after ${ready_after_ms} ms. Ctrl-C stops it.\n`
}

function settingsTable(): string {
  const rows = describeSettings()
  const width = Math.max(...rows.map((row) => row.variable.length))
  return rows
    .map((row) => `  ${row.variable.padEnd(width)}  ${row.meaning}${row.default ? ` [${row.default}]` : ''}`)
    .join('\n')
}
