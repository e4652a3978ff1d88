import { Command } from 'commander'
import { VERSION } from '../version.js'
import { exportCommand } from './export.js'
import { importCommand } from './import.js'
import { migrateCommand } from './migrate.js'
import { openapiCommand } from './openapi.js'
import { projectCommand } from './project.js'
import { runCommand } from './run_command.js'
import { serveCommand } from './serve.js'
import { tokenCommand } from './token.js'

const program = new Command('annals')
  .description('The session store for AI agents.')
  .version(VERSION)
  .addCommand(serveCommand())
  .addCommand(migrateCommand())
  .addCommand(projectCommand())
  .addCommand(tokenCommand())
  .addCommand(exportCommand())
  .addCommand(importCommand())
  .addCommand(openapiCommand())
  .showHelpAfterError('(add --help for what there is)')

await runCommand(() => program.parseAsync())
