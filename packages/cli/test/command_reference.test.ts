import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { EXIT_CODES } from '../src/exit_codes.ts'
import { annalsProgram, commandsOf } from '../src/program.ts'

const PAGE = fileURLToPath(new URL('../../../docs/cli.md', import.meta.url))
const BEGIN = '<!-- commands -->\n'
const END = '<!-- /commands -->'

const page = readFileSync(PAGE, 'utf8')
const leaves = commandsOf(annalsProgram()).filter(({ commands }) => commands.length === 0)

describe('docs/cli.md', () => {
  it('has the help of every command', async () => {
    const [before = '', rest = ''] = page.split(BEGIN)
    const [, after = ''] = rest.split(END)
    const reference = leaves.map((command) => `### ${pathOf(command)}\n\n${helpOf(command)}\n`).join('\n')
    // After a change of a command: npm test -- packages/cli/test/command_reference -u
    await expect(`${before}${BEGIN}\n${reference}\n${END}${after}`).toMatchFileSnapshot(PAGE)
  })

  it('has every exit code', () => {
    const documented = [...page.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code))
    expect(documented).toEqual(Object.values(EXIT_CODES))
  })
})

it.each(leaves.map((command): [string, Command] => [pathOf(command), command]))(
  'the help of %s has an example',
  (_path, command) => {
    expect(helpOf(command)).toMatch(/Examples?:\n {2}\S/)
  },
)

function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent as Command)} ${command.name()}` : command.name()
}

/** What --help prints, the settings of `serve` aside, which stand in the README. */
function helpOf(command: Command): string {
  let text = ''
  command.configureOutput({ writeOut: (piece) => (text += piece), getOutHelpWidth: () => 110 })
  command.outputHelp()
  const help = text.replace(/\nEnvironment:\n[\s\S]*?\n\n/, '\n').trimEnd()
  return `\`\`\`text\n${help}\n\`\`\``
}
