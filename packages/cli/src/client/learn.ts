import type { Skill, SpacePolicy, Statement } from '@annals/client'
import { Command, InvalidArgumentError, Option } from 'commander'
import type { Column } from '../terminal/table.js'
import { parseUuid, readGiven } from './arguments.js'
import { type ConnectionOptions, connect, withService } from './connection.js'
import { type ListOptions, pageQuery, printList, withLimit } from './print_list.js'

const SPACE = "the learning space's id"
const ID = '01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d'
const STATES = ['proposed', 'active', 'conflict', 'retired', 'revoked'] as const

/** annals spaces learn|statements|approve|reject|skills|policy */
export function learningCommands(): Command[] {
  return [
    learnCommand(),
    statementsCommand(),
    decideCommand('approve', 'active', 'Approve a statement: agents receive it from then on.'),
    decideCommand('reject', 'retired', 'Reject or withdraw a statement.'),
    skillsCommand(),
    policyCommand(),
  ]
}

function learnCommand(): Command {
  const command = new Command('learn')
    .description('Let a learning space learn from sessions, including later appends to them.')
    .argument('<space>', SPACE, parseUuid)
    .argument('<sessions...>', 'ids of sessions')
  return withService(command)
    .addHelpText('after', `\nExample:\n  annals spaces learn ${ID} 01a1fcd5-54e9-76ad-801c-6e2444188146`)
    .action(async (space_id: string, sessions: string[], options: ConnectionOptions) => {
      const { annals, output } = await connect(options, 5)
      for (const session_id of sessions.map((text) => parseUuid(text))) {
        const record = await annals.learningSpaces.learn(space_id, session_id)
        output.outcome(record, `The learning space learns from session ${session_id}.`)
      }
    })
}

function statementsCommand(): Command {
  const command = new Command('statements')
    .description('List what a learning space has learnt, newest first.')
    .argument('<space>', SPACE, parseUuid)
    .addOption(new Option('--state <state>', 'only those in this state').choices(STATES))
  return withService(withLimit(command))
    .addHelpText('after', `\nExample:\n  annals spaces statements ${ID} --state proposed`)
    .action(
      async (space_id: string, options: { state?: Statement['state'] } & ListOptions & ConnectionOptions) => {
        const { annals, output } = await connect(options)
        const query = { ...pageQuery(options), ...(options.state && { state: options.state }) }
        const list = annals.learningSpaces.statements(space_id, query)
        const nothing = () => 'There are no such statements.'
        await printList(output, list, () => COLUMNS, options, { unit: 'statements', nothing })
      },
    )
}

function skillsCommand(): Command {
  const command = new Command('skills')
    .description('List the skills of a learning space, or include a skill that you wrote.')
    .argument('<space>', SPACE, parseUuid)
    .option('--upload <zip>', 'first upload this zip with a SKILL.md, and include it')
    .option('--user <identifier>', 'owner of the uploaded skill; by default the project')
    .option('--exclude <skill>', 'first take out the skill with this id', parseUuid)
  return withService(command)
    .addHelpText('after', `\nExample:\n  annals spaces skills ${ID} --upload fill-forms.zip`)
    .action(
      async (
        space_id: string,
        options: { upload?: string; user?: string; exclude?: string } & ConnectionOptions,
      ) => {
        const { upload, user, exclude } = options
        const is_write = upload !== undefined || exclude !== undefined
        const { annals, output } = await connect(options, is_write ? 5 : undefined)
        if (upload !== undefined) {
          const { id } = await annals.skills.create(
            new Uint8Array(await readGiven(upload)),
            user === undefined ? {} : { user },
          )
          await annals.learningSpaces.includeSkill(space_id, id)
        }
        if (exclude !== undefined) await annals.learningSpaces.excludeSkill(space_id, exclude)
        const skills = await annals.learningSpaces.skills(space_id)
        if (output.json) for (const skill of skills) output.value(skill)
        else if (skills.length === 0) output.lines(['The learning space has no skills.'])
        else {
          const { tableLines } = await import('../terminal/table.js')
          output.lines(tableLines(SKILL_COLUMNS, skills, output.width, output.paint))
        }
      },
    )
}

function policyCommand(): Command {
  const command = new Command('policy')
    .description('Show or change how a learning space learns. Options you leave out keep their values.')
    .argument('<space>', SPACE, parseUuid)
    .addOption(
      new Option('--mode <mode>', 'who makes a statement active').choices(['off', 'suggest', 'auto']),
    )
    .option('--max-tokens <tokens>', 'budget of the model for 24 hours; `none` removes it', parseTokens)
    .option('--reward <path>', "where sessions' configs have the reward, such as /reward")
    .option('--group <path>', 'where they have the task')
  return withService(command)
    .addHelpText('after', `\nExample:\n  annals spaces policy ${ID} --mode auto --max-tokens 200000`)
    .action(async (space_id: string, options: PolicyOptions & ConnectionOptions) => {
      const { mode, maxTokens, reward, group } = options
      const given = { mode, max_tokens_per_day: maxTokens, reward, group }
      const changes = Object.entries(given).filter(([, value]) => value !== undefined)
      const { annals, output } = await connect(options, changes.length > 0 ? 5 : undefined)
      let policy = await annals.learningSpaces.policy(space_id)
      if (changes.length > 0) {
        const merged = Object.entries({ ...policy, ...Object.fromEntries(changes) })
        const kept = Object.fromEntries(merged.filter(([, value]) => value !== 'none'))
        policy = await annals.learningSpaces.setPolicy(space_id, kept as SpacePolicy)
      }
      if (output.json) output.value(policy)
      else output.lines(Object.entries(policy).map(([name, value]) => `${name}: ${value}`))
    })
}

interface PolicyOptions extends Partial<Pick<SpacePolicy, 'mode' | 'reward' | 'group'>> {
  maxTokens?: number | 'none'
}

function parseTokens(text: string): number | 'none' {
  if (text === 'none') return text
  if (!/^\d{1,10}$/.test(text)) throw new InvalidArgumentError('It must be a number of tokens, or none.')
  return Number(text)
}

function decideCommand(name: string, state: 'active' | 'retired', description: string): Command {
  const command = new Command(name)
    .description(description)
    .argument('<statement>', "the statement's id", parseUuid)
  return withService(command)
    .addHelpText('after', `\nExample:\n  annals spaces ${name} ${ID}`)
    .action(async (statement_id: string, options: ConnectionOptions) => {
      const { annals, output } = await connect(options, 5)
      const statement = await annals.learningSpaces.changeStatement(statement_id, { state })
      output.outcome(statement, `Statement ${statement.id} is ${statement.state}.`)
    })
}

const SKILL_COLUMNS: Column<Skill>[] = [
  { title: 'skill', text: ({ id }) => id, style: 'cyan' },
  { title: 'source', text: ({ source }) => source },
  { title: 'name', text: ({ name }) => name },
  { title: 'description', text: ({ description }) => description, shrinks: true },
]

const COLUMNS: Column<Statement>[] = [
  { title: 'statement', text: ({ id }) => id, style: 'cyan' },
  { title: 'state', text: ({ state }) => state },
  { title: 'kind', text: ({ kind }) => kind },
  { title: 'sessions', text: ({ supports }) => String(supports) },
  { title: 'text', text: ({ text }) => text, shrinks: true },
]
