import { isJsonObject, writeJson } from '@annals/messages/json'
import { chatMessageOf } from '../chat_messages.js'
import { type FileFacts, type Format, type Parser, stemOf } from '../format.js'
import { digestOf } from '../ids.js'
import { isEmpty, listIn, objectIn, objectsIn, textIn, without } from '../json.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'

/** Messages that tell runs apart. */
const BEGINNING = 6

export const SWE_AGENT: Format = {
  name: 'swe-agent',
  title: 'trajectories of SWE-agent and mini-SWE-agent (.traj)',
  knows: (sample) =>
    (Array.isArray(sample.trajectory) && (Array.isArray(sample.history) || isJsonObject(sample.info))) ||
    // Of a long one, the beginning may not reach beyond its steps; a demonstration has nothing but its history.
    (Array.isArray(sample.trajectory) && isBegun(sample)) ||
    (Array.isArray(sample.history) && textIn(objectIn(sample.history[0]).message_type) !== undefined) ||
    textIn(sample.trajectory_format)?.startsWith('mini-swe-agent') === true,
  open: (output, file) => new SweAgentParser(output, file),
}

function isBegun(sample: JsonObject): boolean {
  const is_own = Object.keys(sample).every((name) => name === 'trajectory' || name === 'environment')
  return is_own && (sample.trajectory as unknown[]).length === 0
}

class SweAgentParser implements Parser {
  constructor(
    private readonly out: Output,
    private readonly file: FileFacts,
  ) {}

  read(value: unknown): void {
    if (!isJsonObject(value)) return
    const { trajectory, history, messages, ...about } = value
    const info = objectIn(about.info)
    const said = [...listIn(history), ...listIn(messages)]
    const instance = textIn(about.instance_id) ?? stemOf(this.file.name)
    // Runs of one instance have the same name, and begin alike until the model speaks.
    const key = `${instance} ${digestOf(said.slice(0, BEGINNING))}`
    const { environment } = about
    const { model_name } = objectIn(objectIn(objectIn(info.config).model))
    this.out.session(key, { configs: { agent: 'swe-agent', instance, environment, model: model_name } })
    let last_call: string | undefined
    for (const [index, message] of said.entries()) last_call = this.message(key, index, message, last_call)
    const known = new Set(said.map((message) => writeJson(message)))
    for (const [index, step] of listIn(trajectory).entries())
      this.out.raw(key, 'step', withoutRepeats(step, known), { native: `step ${index}`, noise: true })
    this.out.raw(key, 'run', about, { native: 'run', noise: true })
    const { exit_status, submission, model_stats } = info
    if (exit_status !== undefined || submission !== undefined)
      this.out.outcome(key, without({ exit_status, submission, model_stats, resolved: info.resolved }))
    this.out.end(key)
  }

  private message(
    key: string,
    index: number,
    message: unknown,
    last_call: string | undefined,
  ): string | undefined {
    const { tool_call_ids } = objectIn(message)
    const answered = textIn(listIn(tool_call_ids)[0]) ?? last_call
    const given =
      objectIn(message).role === 'tool' ? { tool_call_id: answered, ...objectIn(message) } : message
    const blob = chatMessageOf(given)
    const at = objectIn(objectIn(message).extra).timestamp ?? objectIn(message).timestamp
    const items = responseItems(message)
    for (const [nth, item] of items.entries())
      this.out.message(key, 'responses', item, {
        native: `${index}/${nth}`,
        at,
        ...(nth === 0 && { meta: { swe_agent: without(objectIn(message), 'output') } }),
      })
    if (items.length > 0) return last_call
    if (blob === undefined) this.out.raw(key, 'message', message, { native: index, at })
    else {
      const { content, ...rest } = objectIn(message)
      const told = without({ ...rest, ...(blob.content !== content && { content }) }, 'role', 'tool_call_id')
      this.out.message(key, 'openai', blob, {
        native: index,
        at,
        ...(!isEmpty(told) && { meta: { swe_agent: told } }),
      })
    }
    return textIn(objectsIn(blob?.tool_calls)[0]?.id) ?? last_call
  }
}

/** What mini-SWE-agent has of OpenAI's Responses API: answers, and the results of their calls. */
function responseItems(message: unknown): unknown[] {
  const { object, output, type } = objectIn(message)
  if (object === 'response') return listIn(output)
  return type === 'function_call_output' ? [message] : []
}

/** Each step repeats the messages that it was asked with. */
function withoutRepeats(step: unknown, known: ReadonlySet<string>): unknown {
  if (!isJsonObject(step)) return step
  const shorter = { ...step }
  for (const name of ['query', 'messages']) {
    const list = step[name]
    if (Array.isArray(list) && list.every((message) => known.has(writeJson(message)))) delete shorter[name]
  }
  return shorter
}
