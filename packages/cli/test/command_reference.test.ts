import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { EXIT_CODES } from '../src/exit_codes.ts'
import { annalsProgram, commandsOf } from '../src/program.ts'

const PAGE = fileURLToPath(new URL('../../../docs/cli.md', import.meta.url))
const BEGIN = '<!-- commands -->\n'
const END = '<!-- /commands -->'

/** Options that the page explains once, above the table. */
const COMMON = new Set(['--json', '--no-json', '--fields', '--url', '--token', '--profile'])

const page = readFileSync(PAGE, 'utf8')
const leaves = commandsOf(annalsProgram()).filter(({ commands }) => commands.length === 0)

describe('docs/cli.md', () => {
  it('has every command with its options', async () => {
    const [before = '', rest = ''] = page.split(BEGIN)
    const [, after = ''] = rest.split(END)
    const reference = ['| command | what it does | its options |', '|---|---|---|', ...leaves.map(rowOf), '']
    // After a change of a command: npm test -- packages/cli/test/command_reference -u
    await expect(`${before}${BEGIN}\n${reference.join('\n')}\n${END}${after}`).toMatchFileSnapshot(PAGE)
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

function rowOf(command: Command): string {
  const usage = `${pathOf(command)} ${command.usage().replace(/\[options\] ?/, '')}`.trim()
  const [sentence = ''] = /^[^.]*\.(?!\S)/.exec(command.description()) ?? [command.description()]
  const shown = command.options.filter(({ hidden, long }) => !hidden && !COMMON.has(long ?? ''))
  const options = shown.map(({ long, short }) => `\`${long ?? short}\``).join(' ')
  const cells = [`\`${usage}\``, sentence, options]
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
}

function helpOf(command: Command): string {
  let text = ''
  command.configureOutput({ writeOut: (piece) => (text += piece), getOutHelpWidth: () => 110 })
  command.outputHelp()
  return text
}
