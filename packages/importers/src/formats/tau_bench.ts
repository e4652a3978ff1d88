import { isJsonObject } from '@annals/messages/json'
import { chatMessageOf } from '../chat_messages.js'
import { type FileFacts, type Format, type Parser, stemOf } from '../format.js'
import { digestOf } from '../ids.js'
import { isEmpty, listIn, objectIn, textIn, without } from '../json.js'
import type { Output } from '../output.js'
import type { Piece } from '../reading/pieces.js'
import type { JsonObject } from '../records.js'

/** Messages that tell runs apart. */
const BEGINNING = 6

/** Results of tau-bench, a list of runs, and of tau2-bench, a document with simulations. */
export const TAU_BENCH: Format = {
  name: 'tau-bench',
  title: 'results of tau-bench and tau2-bench',
  shape: 'document',
  streamed: ['simulations'],
  knows: (sample) =>
    (Array.isArray(sample.traj) && 'task_id' in sample) ||
    (Array.isArray(sample.simulations) && ('tasks' in sample || 'info' in sample)) ||
    ('tasks' in sample && 'info' in sample && 'timestamp' in sample) ||
    isSimulation(sample),
  open: (output, file) => new TauBenchParser(output, file),
}

class TauBenchParser implements Parser {
  private readonly file_key: string
  private info: JsonObject = {}

  constructor(
    private readonly out: Output,
    { name }: FileFacts,
  ) {
    this.file_key = stemOf(name)
  }

  read(value: unknown, { member }: Piece): void {
    if (!isJsonObject(value)) return
    if (Array.isArray(value.traj)) this.run(value, value.traj)
    else if (member === 'simulations' || isSimulation(value)) this.simulation(value)
    else this.about(value, member === '')
  }

  private run({ traj: _, ...about }: JsonObject, messages: unknown[]): void {
    const { task_id, trial, info, reward } = about
    const key = runKey(task_id, trial, messages)
    const task = objectIn(objectIn(info).task)
    this.out.session(key, { user: task.user_id, configs: { agent: 'tau-bench', task_id, trial, reward } })
    this.messages(key, messages)
    this.out.raw(key, 'run', about, { native: 'run', noise: true })
    if (reward != null) this.out.outcome(key, { reward })
    this.out.end(key)
  }

  private simulation({ messages, ...about }: JsonObject): void {
    const { id, task_id, trial, reward_info, start_time, end_time, termination_reason } = about
    const key = textIn(id) ?? runKey(task_id, trial, listIn(messages))
    const { reward } = objectIn(reward_info)
    const model = objectIn(this.info.agent_info).llm
    const configs = { agent: 'tau2-bench', task_id, trial, reward, model }
    this.out.session(key, { configs, changed_at: end_time ?? start_time })
    this.messages(key, listIn(messages))
    this.out.raw(key, 'simulation', about, { native: 'simulation', at: end_time, noise: true })
    if (reward != null) this.out.outcome(key, without({ reward, termination_reason }), { at: end_time })
    this.out.end(key)
  }

  private messages(key: string, messages: unknown[], within = ''): void {
    for (const [nth, message] of messages.entries()) {
      const index = within === '' ? nth : `${within}${nth}`
      const given = objectIn(message)
      const { timestamp: at, role, content, tool_calls, id } = given
      // Of tau-bench, messages are OpenAI's own; tau2-bench has the call's id as the result's.
      // A result of tau2-bench may stand for those of several calls.
      if (Array.isArray(given.tool_messages)) {
        this.messages(key, given.tool_messages, `${index}/`)
        continue
      }
      const is_result = role === 'tool' && 'requestor' in given
      const is_own =
        !('turn_idx' in given || is_result) && !listIn(tool_calls).some((call) => 'name' in objectIn(call))
      const blob = is_own
        ? message
        : chatMessageOf(role === 'tool' ? { tool_call_id: id, ...given } : message)
      const told = is_own
        ? {}
        : without({ ...given, ...(objectIn(blob).content === content && { content: null }) }, 'role')
      const facts = { native: index, at, ...(!isEmpty(told) && { meta: { tau2: told } }) }
      if (blob === undefined) this.out.raw(key, 'message', message, { native: index, at })
      else if (is_result && given.error === true) {
        const failed = { type: 'tool_result', tool_use_id: id, content, is_error: true }
        this.out.message(key, 'anthropic', { role: 'user', content: [failed] }, facts)
      } else this.out.message(key, 'openai', blob, facts)
    }
  }

  /** What the file says of all its simulations. */
  private about(value: JsonObject, is_header: boolean): void {
    this.info = objectIn(value.info)
    const key = this.file_key
    this.out.session(key, { configs: { agent: 'tau2-bench', model: objectIn(this.info.agent_info).llm } })
    if (!is_header)
      this.out.raw(key, 'results', without(value, 'simulations'), { at: value.timestamp, noise: true })
  }
}

/** A run's name is its task and its beginning: results of several models have the same tasks. */
function runKey(task_id: unknown, trial: unknown, messages: readonly unknown[]): string {
  return `${task_id}/${trial ?? 0}/${digestOf(messages.slice(0, BEGINNING))}`
}

function isSimulation({ task_id, messages, reward_info }: JsonObject): boolean {
  return task_id !== undefined && Array.isArray(messages) && reward_info !== undefined
}
