import type { RunItem, RunnerRequest } from '@annals/client'
import { Command, Option } from 'commander'
import { UsageError } from '../run_command.js'
import type { Column } from '../terminal/table.js'
import { agoOf } from '../terminal/times.js'
import { visibleLine } from '../terminal/visible.js'
import { parseSession, parseUuid } from './arguments.js'
import { type ConnectionOptions, connect, withService } from './connection.js'
import { findSession } from './pick_session.js'
import { type ListOptions, pageQuery, printList, withLimit } from './print_list.js'

type State = 'running' | 'waiting' | 'queued'

const RUN_COLUMNS: Column<RunItem>[] = [
  { title: 'session', text: ({ session_id }) => session_id, style: 'cyan' },
  { title: 'since', text: ({ since }) => agoOf(since) },
  { title: 'runner', text: ({ run }) => run.owner ?? '', shrinks: true },
  { title: 'pending', text: ({ run }) => String(run.pending) },
  { title: 'open requests', text: ({ run }) => String(run.open_requests) },
]

/** annals runs */
export function runsCommand(): Command {
  const command = new Command('runs').description(
    'List sessions that are running, wait for an answer, or have input that no runner has taken.',
  )
  return withService(withLimit(command, { ordered: false }))
    .addOption(
      new Option('--state <state>', 'only sessions in this state')
        .choices(['running', 'waiting', 'queued'])
        .default('running'),
    )
    .addHelpText('after', '\nExample:\n  annals runs --state waiting')
    .action(async ({ state, ...options }: ListOptions & ConnectionOptions & { state: State }) => {
      const { annals, output } = await connect(options)
      const { limit } = pageQuery(options)
      await printList(output, annals.runs.list({ state, limit }), () => RUN_COLUMNS, options, {
        unit: 'sessions',
        nothing: () => `No session is ${state}.`,
      })
    })
}

const REQUEST_COLUMNS: Column<RunnerRequest>[] = [
  { title: 'request', text: ({ id }) => id, style: 'cyan' },
  { title: 'asked', text: ({ created_at }) => agoOf(created_at) },
  { title: 'what', text: whatOf, shrinks: true },
]

/** annals requests */
export function requestsCommand(): Command {
  const command = new Command('requests').description('List requests that wait for an answer, newest first.')
  return withService(withLimit(command))
    .option('--user <user>', 'only those of sessions of this user')
    .addHelpText('after', '\nExample:\n  annals requests --oldest-first')
    .action(async ({ user, ...options }: ListOptions & ConnectionOptions & { user?: string }) => {
      const { annals, output } = await connect(options)
      const list = annals.runs.requests({ ...pageQuery(options), user })
      await printList(output, list, () => REQUEST_COLUMNS, options, {
        unit: 'requests',
        nothing: () => 'Nothing waits for an answer.',
      })
    })
}

/** annals approve, annals deny */
export function decideCommand(decision: 'approve' | 'deny'): Command {
  const command = new Command(decision)
    .description(`${decision === 'approve' ? 'Approve' : 'Deny'} a request. The first answer counts.`)
    .argument('<request>', "the request's id", parseUuid)
    .option('--by <name>', 'who decides')
  return withService(command)
    .addHelpText('after', `\nExample:\n  annals ${decision} 01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d --by ada`)
    .action(async (id: string, { by, ...options }: ConnectionOptions & { by?: string }) => {
      const { annals, output } = await connect(options)
      // A request never changes, so what was listed is what is approved.
      const { call_sha256, ...asked } = await annals.runs.getRequest(id)
      const digest = decision === 'approve' ? call_sha256 : undefined
      const resolved = await annals.runs.resolve(id, { decision, by, call_sha256: digest })
      output.outcome(resolved, `${decision === 'approve' ? 'Approved' : 'Denied'}: ${whatOf(asked)}`)
    })
}

/** annals answer */
export function answerCommand(): Command {
  const command = new Command('answer')
    .description('Answer a question. The first answer counts.')
    .argument('<request>', "the request's id", parseUuid)
    .argument('<answer>', 'a text')
    .option('--by <name>', 'who answers')
  return withService(command)
    .addHelpText(
      'after',
      '\nExample:\n  annals answer 01931b0e-7d3c-7a52-9d3f-8a4c1f0e2b6d "Take the blue one."',
    )
    .action(async (id: string, answer: string, { by, ...options }: ConnectionOptions & { by?: string }) => {
      const { annals, output } = await connect(options)
      const asked = await annals.runs.getRequest(id)
      const resolved = await annals.runs.resolve(id, { decision: 'answer', answer, by })
      output.outcome(resolved, `Answered: ${whatOf(asked)}`)
    })
}

interface SendOptions extends ConnectionOptions {
  mode: 'queue' | 'steer' | 'interrupt'
  type?: string
}

/** annals send */
export function sendCommand(): Command {
  const command = new Command('send')
    .description('Send input to the runner of a session: a text, or an event such as `stop`.')
    .argument('<session>', "the session's id, or its beginning", parseSession)
    .argument('[text]', 'what to say')
    .addOption(
      new Option('--mode <mode>', 'after the turn, during it, or instead of it')
        .choices(['queue', 'steer', 'interrupt'])
        .default('queue'),
    )
    .option('--type <type>', 'an event of this type instead of a text')
  return withService(command)
    .addHelpText('after', '\nExample:\n  annals send 01931b0e --type stop --mode interrupt')
    .action(async (session: string, text: string | undefined, { mode, type, ...options }: SendOptions) => {
      if ((text === undefined) === (type === undefined)) throw new UsageError('Pass either a text or --type.')
      const { annals, output } = await connect(options)
      const id = await findSession(annals, session)
      const sent = await annals.runs.send(
        id,
        type === undefined
          ? { kind: 'message', mode, blob: { role: 'user', content: text } }
          : { kind: 'event', mode, type, data: {} },
      )
      output.outcome(sent, `Sent as input ${sent.id}.`)
    })
}

/** The question, for a person. */
function whatOf({ kind, call, text }: Pick<RunnerRequest, 'kind' | 'call' | 'text'>): string {
  const what = call ? `${call.name} ${JSON.stringify(call.arguments)}` : undefined
  return visibleLine([text, what].filter((part) => part !== undefined).join(': ')) || kind
}
