import { Argument, Command } from 'commander'
import { bashCompletion } from './bash.js'
import { commandTree, type TreeCommand } from './command_tree.js'
import { fishCompletion } from './fish.js'
import { zshCompletion } from './zsh.js'

const SHELLS: Record<string, (tree: TreeCommand[]) => string> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
}

/** annals completion */
export function completionCommand(): Command {
  return new Command('completion')
    .description('Print a completion script for your shell.')
    .addArgument(new Argument('<shell>', 'your shell').choices(Object.keys(SHELLS)))
    .addHelpText(
      'after',
      `
Examples:
  eval "$(annals completion bash)"   in ~/.bashrc
  eval "$(annals completion zsh)"    in ~/.zshrc, after compinit
  annals completion fish | source    in ~/.config/fish/config.fish
  npx annals completion bash > ~/.annals.bash    if annals is not in the PATH; source that file`,
    )
    .action((shell: string, _options: unknown, command: Command) => {
      process.stdout.write(SHELLS[shell]!(commandTree(rootOf(command))))
    })
}

function rootOf(command: Command): Command {
  return command.parent ? rootOf(command.parent as Command) : command
}
