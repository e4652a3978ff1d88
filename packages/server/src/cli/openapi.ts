import { Command } from 'commander'
import { describeApiAsJson } from '../main.js'

/** annals openapi */
export function openapiCommand(): Command {
  return new Command('openapi')
    .description('Print the OpenAPI description of the interface. A running service has it at /openapi.json.')
    .addHelpText('after', '\nExample:\n  annals openapi > openapi.json')
    .action(async () => {
      process.stdout.write(await describeApiAsJson())
    })
}
