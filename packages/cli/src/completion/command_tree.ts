import type { Command, Option } from 'commander'

/** A command, as shells complete it. */
export interface TreeCommand {
  /** Its words, such as `annals sessions list`. */
  path: string
  commands: { name: string; description: string }[]
  options: TreeOption[]
  /** Whether its argument may be a file. */
  takes_file: boolean
}

export interface TreeOption {
  flag: string
  description: string
  value: 'none' | 'any' | 'file' | { choices: string[] }
}

/** The subcommands of `root`, including itself, with their possible next words. */
export function commandTree(root: Command, path = root.name()): TreeCommand[] {
  const help = root.createHelp()
  const children = help.visibleCommands(root) as Command[]
  const own: TreeCommand = {
    path,
    commands: children.map((child) => ({ name: child.name(), description: sentence(child.description()) })),
    options: help
      .visibleOptions(root)
      .flatMap((option) =>
        option.long
          ? [{ flag: option.long, description: sentence(option.description), value: valueTaken(option) }]
          : [],
      ),
    takes_file: root.registeredArguments.some((argument) => argument.name() === 'file'),
  }
  const below = children.filter((child) => root.commands.includes(child))
  return [own, ...below.flatMap((child) => commandTree(child, `${path} ${child.name()}`))]
}

function valueTaken(option: Option): TreeOption['value'] {
  if (!option.required && !option.optional) return 'none'
  if (option.argChoices) return { choices: option.argChoices }
  return /<(file|json)>/.test(option.flags) ? 'file' : 'any'
}

/** The first sentence, on one line. */
function sentence(description: string): string {
  return description.replace(/\s+/g, ' ').split(/[.:;] |\.$/, 1)[0]!
}
