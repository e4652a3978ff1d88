import { Command } from 'commander'
import { describeSettings, readConfig } from '../config.js'
import type { Service } from '../main.js'
import { tellProgress } from './with_database.js'

/** annals serve */
export function serveCommand(): Command {
  return new Command('serve')
    .description('Run the service, with its own embedded PostgreSQL unless DATABASE_URL names a server.')
    .addHelpText('after', `\nEnvironment:\n${settingsTable()}\n\nExample:\n  PORT=8080 annals serve`)
    .action(async () => {
      const stopping = stopSignal()
      const { startService } = await import('../main.js')
      const service = await startService(readConfig(process.env), tellProgress)
      process.stdout.write(banner(service))
      const signal = await stopping
      process.stderr.write(`${signal}: answering what was accepted, then stopping.\n`)
      await service.stop()
      // Nothing is left to do; a connection that somebody forgot must not keep the process.
      process.exit(0)
    })
}

/** Resolves with the first SIGTERM or SIGINT. A second one ends the process at once. */
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

function banner({ url, database, api_key, ready_after_ms }: Service): string {
  const lines = ['', `Annals is ready at ${url}`, `  database   ${database}`, `  reference  ${url}/docs`, '']
  if (api_key !== undefined) {
    lines.push(
      `API key: ${api_key}`,
      'It opens the project "default" and is shown this once. Try it:',
      '',
      `curl -s ${url}/api/v1/session -H 'Authorization: Bearer ${api_key}' -H 'Content-Type: application/json' -d '{"user":"alice","configs":{"agent":"demo"}}'`,
    )
  } else {
    lines.push(
      'Another API key: npx annals token create --project default --name NAME. Is it there?',
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
