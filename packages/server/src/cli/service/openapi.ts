import { Command } from 'commander'

/** annals openapi */
export function openapiCommand(): Command {
  return new Command('openapi')
    .description('Print the OpenAPI description of the API. A running service serves it at /openapi.json.')
    .addHelpText('after', '\nExample:\n  annals openapi > openapi.json')
    .action(async () => {
      const { describeApiAsJson } = await import('../../service/service.js')
      process.stdout.write(await describeApiAsJson())
    })
}
