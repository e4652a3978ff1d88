import { Command } from 'commander'
import { createProject, listProjects } from '../resources/projects.js'
import { printTable } from './print_table.js'
import { withDatabase } from './with_database.js'

/** annals project create|list */
export function projectCommand(): Command {
  return new Command('project')
    .description('Projects: each is a tenant with sessions, users and tokens of its own.')
    .addCommand(
      new Command('create')
        .description('Create a project and its first token, which is shown this once.')
        .argument('<name>', 'a name that no other project has')
        .option('--json', 'print JSON')
        .addHelpText('after', '\nExample:\n  annals project create checkout-agent')
        .action(async (name: string, options: { json?: boolean }) => {
          const { json, token } = await withDatabase((database) => createProject(database, name))
          if (options.json) process.stdout.write(`{"project":${json},"token":"${token}"}\n`)
          else
            process.stdout.write(
              `Created project ${name} (${JSON.parse(json).id}).\nAPI key, shown this once: ${token}\n`,
            )
        }),
    )
    .addCommand(
      new Command('list')
        .description('List all projects.')
        .option('--json', 'print JSON')
        .addHelpText('after', '\nExample:\n  annals project list --json')
        .action(async (options: { json?: boolean }) => {
          const projects = await withDatabase(listProjects)
          if (options.json) process.stdout.write(`[${projects.join(',')}]\n`)
          else printTable(['name', 'id', 'created_at'], projects)
        }),
    )
}
