import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { EXIT_CODES } from '../src/exit_codes.ts'
import { annalsProgram, commandsOf } from '../src/program.ts'

const PAGE = fileURLToPath(new URL('../../../docs/cli.md', import.meta.url))
const BEGIN = '<!-- commands -->\n'
const END = '<!-- /commands -->'

/** Options that the page explains once, in its own table; a command that means something else by one keeps it. */
const SHARED_OPTIONS: Array<[name: string, line: RegExp]> = [
  ['--json', /^ {2}--json +print JSON lines .*\n/m],
  ['--no-json', /^ {2}--no-json +print for people.*\n/m],
  ['--fields', /^ {2}--fields <names> +print JSON lines with these.*\n(?: {10,}\S.*\n)?/m],
  ['--url', /^ {2}--url <url> +URL of the service.*\n(?: {10,}\S.*\n)?/m],
  ['--token', /^ {2}--token <token> +API key.*\n(?: {10,}\S.*\n)?/m],
  ['--profile', /^ {2}--profile <name> +a stored login.*\n(?: {10,}\S.*\n)?/m],
]

const page = readFileSync(PAGE, 'utf8')
const leaves = commandsOf(annalsProgram()).filter(({ commands }) => commands.length === 0)

describe('docs/cli.md', () => {
  it('has the help of every command', async () => {
    const [before = '', rest = ''] = page.split(BEGIN)
    const [, after = ''] = rest.split(END)
    const reference = leaves.map(sectionOf).join('\n')
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

/** A command's usage as the heading, and below it the rest of its help. */
function sectionOf(command: Command): string {
  const [, usage = '', rest = ''] = /^Usage: (.*)\n\n([\s\S]*)/.exec(helpOf(command)) ?? []
  return `### \`${usage.replace(' [options]', '')}\`\n\n\`\`\`text\n${rest}\n\`\`\`\n`
}

/** What --help prints, without the settings of `serve`, which the README has, and options that the page explains once. */
function helpOf(command: Command): string {
  let text = ''
  command.configureOutput({ writeOut: (piece) => (text += piece), getOutHelpWidth: () => 110 })
  command.outputHelp()
  const help = text
    .replace(/\nEnvironment:\n[\s\S]*?\n\n/, '\n')
    .replace(/^ {2}-h, --help .*\n/m, '')
    .replace(/^Options:\n/m, (title) => {
      const names = SHARED_OPTIONS.filter(([, line]) => line.test(text)).map(([name]) => name)
      return names.length === 0 ? title : `Options (also ${names.join(', ')}):\n`
    })
  const own = SHARED_OPTIONS.reduce((rest, [, line]) => rest.replace(line, ''), help)
  const none = own
    .replace(/\nOptions:\n(?=\n|$)/, '')
    .replace(/^Options \(also (.*)\):\n(?=\n|$)/m, 'Options: $1\n')
  return none.trimEnd()
}
