import { VERSION } from '@annals/kits/version.js'
import { Command } from 'commander'
import { appendCommand } from './client/append.js'
import { compactCommand } from './client/compact.js'
import { compareCommand } from './client/compare.js'
import { forkCommand } from './client/fork.js'
import { latestCommand } from './client/latest.js'
import { loginCommand, logoutCommand } from './client/login.js'
import { mcpCommand } from './client/mcp.js'
import { membersCommand } from './client/members.js'
import { redactCommand } from './client/redact.js'
import { retractCommand } from './client/retract.js'
import { answerCommand, decideCommand, requestsCommand, runsCommand, sendCommand } from './client/runs.js'
import { askCommand, searchCommand } from './client/search.js'
import { sessionsCommand } from './client/sessions.js'
import { openCommand, showCommand } from './client/show.js'
import { spacesCommand } from './client/spaces.js'
import { tailCommand } from './client/tail.js'
import { tokensCommand } from './client/tokens.js'
import { toolsCommand } from './client/tools.js'
import { usageCommand } from './client/usage.js'
import { usersCommand } from './client/users.js'
import { webhooksCommand } from './client/webhooks.js'
import { whoamiCommand } from './client/whoami.js'
import { completionCommand } from './completion/completion.js'
import { anchorCommand } from './database/anchor.js'
import { backupCommand, restoreCommand } from './database/backup.js'
import { distributeCommand } from './database/distribute.js'
import { doctorCommand } from './database/doctor.js'
import { exportCommand } from './database/export.js'
import { importCommand } from './database/import.js'
import { migrateCommand } from './database/migrate.js'
import { projectCommand } from './database/project.js'
import { pruneCommand } from './database/prune.js'
import { keyCommand, tokenCommand } from './database/token.js'
import { verifyCommand } from './database/verify.js'
import { demoCommand } from './demo/demo.js'
import { EXIT_CODES } from './exit_codes.js'
import { commandMeant } from './meant_command.js'
import { consoleCommand } from './service/console.js'
import { openapiCommand } from './service/openapi.js'
import { serveCommand } from './service/serve.js'
import { commandLine } from './terminal/command_name.js'
import { visible } from './terminal/visible.js'

/**
 * All commands, in listing order. A command's module only describes it; what it works with is imported when it runs,
 * so that help, completion and small commands start quickly.
 */
export function annalsProgram(): Command {
  const program = new Command('annals')
    .description('The session store for AI agents.')
    .version(VERSION, '-v, --version')
    .commandsGroup('Sessions, through a running service:')
    .addCommand(sessionsCommand())
    .addCommand(showCommand())
    .addCommand(openCommand())
    .addCommand(compareCommand())
    .addCommand(tailCommand())
    .addCommand(appendCommand())
    .addCommand(forkCommand())
    .addCommand(retractCommand())
    .addCommand(redactCommand())
    .addCommand(runsCommand())
    .addCommand(sendCommand())
    .addCommand(requestsCommand())
    .addCommand(decideCommand('approve'))
    .addCommand(decideCommand('deny'))
    .addCommand(answerCommand())
    .addCommand(compactCommand())
    .addCommand(latestCommand())
    .addCommand(askCommand())
    .addCommand(searchCommand())
    .addCommand(toolsCommand())
    .addCommand(spacesCommand())
    .addCommand(usersCommand())
    .addCommand(usageCommand())
    .addCommand(tokensCommand())
    .addCommand(membersCommand())
    .addCommand(webhooksCommand())
    .addCommand(mcpCommand())
    .commandsGroup('The service and its database:')
    .addCommand(serveCommand())
    .addCommand(consoleCommand())
    .addCommand(demoCommand())
    .addCommand(migrateCommand())
    .addCommand(distributeCommand())
    .addCommand(projectCommand())
    .addCommand(keyCommand())
    .addCommand(tokenCommand())
    .addCommand(exportCommand())
    .addCommand(importCommand())
    .addCommand(backupCommand())
    .addCommand(restoreCommand())
    .addCommand(verifyCommand())
    .addCommand(anchorCommand())
    .addCommand(pruneCommand())
    .addCommand(doctorCommand())
    .commandsGroup('This command line:')
    .addCommand(loginCommand())
    .addCommand(logoutCommand())
    .addCommand(whoamiCommand())
    .addCommand(completionCommand())
    .addCommand(openapiCommand())
    .helpCommand('help [command]', 'show what a command does')
    .addHelpText('after', () => `\n${FIRST_STEPS}`)
    .on('command:*', ([name]: [string]) => refuseCommand(program, name))
  for (const command of commandsOf(program)) prepare(command)
  return program
}

const FIRST_STEPS = `Get started:
  ${commandLine(['serve'])}         the service, with its own database; prints an API key
  ${commandLine(['demo'])}          in a second terminal: demo sessions to look at
  ${commandLine(['sessions', 'list'])}
`

/** Suggests what the word may mean; a slip of the finger is what commander itself looks for. */
function refuseCommand(program: Command, word: string): void {
  const meant = commandMeant(
    word,
    program.commands.map((command) => command.name()),
  )
  if (meant === undefined) (program as unknown as { unknownCommand(): never }).unknownCommand()
  else program.error(`annals: there is no command '${word}': did you mean ${commandLine(meant.split(' '))}?`)
}

/** A command and its subcommands. */
export function commandsOf(command: Command): Command[] {
  return [command, ...command.commands.flatMap((child) => commandsOf(child as Command))]
}

/** The words that name a command, without the program's own. */
function wordsOf(command: Command): string[] {
  return command.parent ? [...wordsOf(command.parent as Command), command.name()] : []
}

/** Applies to every command: our own error messages, and meaningful exit codes. */
function prepare(command: Command): void {
  command
    .showHelpAfterError(`(see \`${commandLine([...wordsOf(command), '--help'])}\`)`)
    .configureOutput({ outputError: (text, write) => write(visible(plainly(text))) })
    .exitOverride((error) => {
      if (error.exitCode !== 0) error.exitCode = EXIT_CODES.usage
      throw error
    })
}

/** An error of the library for commands, in words that tell a person which argument is meant. */
function plainly(text: string): string {
  return text
    .replace(/^error: /, 'annals: ')
    .replace(
      /command-argument value '([^']*)' is invalid for argument '([^']*)'\./,
      "'$1' is not a valid <$2>.",
    )
}
