import { readFile } from 'node:fs/promises'
import { packagedFile } from '@annals/kits/version.js'
import { Command } from 'commander'

/** annals openapi */
export function openapiCommand(): Command {
  return new Command('openapi')
    .description('Print the OpenAPI description of the API. A running service serves it at /openapi.json.')
    .addHelpText('after', '\nExample:\n  annals openapi > openapi.json')
    .action(async () => {
      const description: unknown = JSON.parse(await readFile(packagedFile('dist/openapi.json'), 'utf8'))
      process.stdout.write(`${JSON.stringify(description, null, 2)}\n`)
    })
}
