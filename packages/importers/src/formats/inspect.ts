import { isJsonObject } from '@annals/messages/json'
import { chatMessageOf } from '../chat_messages.js'
import type { FileFacts, Format, Parser } from '../format.js'
import { isEmpty, listIn, objectIn, objectsIn, textIn, without } from '../json.js'
import type { Output } from '../output.js'
import type { Piece } from '../reading/pieces.js'
import type { JsonObject } from '../records.js'

const ATTACHMENT = /attachment:\/\/([0-9a-f]{32})/g

/** Logs of Inspect: one document with samples, or an archive with a document for each. */
export const INSPECT: Format = {
  name: 'inspect',
  title: 'evaluation logs of Inspect (.json and .eval)',
  shape: 'document',
  streamed: ['samples'],
  archive: { ending: /\.eval$/i, repeats: /(?:^|\/)summaries(?:\.json$|\/)/ },
  knows: (sample) => isLog(sample) || isSample(sample),
  open: (output, file) => new InspectParser(output, file),
}

class InspectParser implements Parser {
  private evaluation: JsonObject

  constructor(
    private readonly out: Output,
    private readonly file: FileFacts,
  ) {
    this.evaluation = objectIn(file.shared.get('inspect'))
  }

  read(value: unknown, { member }: Piece): void {
    if (!isJsonObject(value)) return
    if (member === 'samples' || isSample(value)) this.sample(value)
    else if (member === undefined && !isLog(value) && !isStart(value))
      this.out.raw(this.key, 'reductions', value, { noise: true })
    else this.log(value, member === '')
  }

  private get key(): string {
    const { eval_id, run_id, task } = this.evaluation
    return textIn(eval_id) ?? textIn(run_id) ?? textIn(task) ?? 'evaluation'
  }

  /** The log without its samples: once before them, and once with what stands after them. */
  private log(log: JsonObject, is_header: boolean): void {
    if (isJsonObject(log.eval)) {
      this.evaluation = log.eval
      this.file.shared.set('inspect', this.evaluation)
    }
    const { task, model, created, dataset } = this.evaluation
    const { status } = log
    const configs = { agent: 'inspect', task, model, dataset: objectIn(dataset).name, status }
    this.out.session(this.key, { configs, changed_at: objectIn(log.stats).completed_at ?? created })
    if (is_header) return
    this.out.raw(this.key, 'log', without(log, 'samples'), { at: created, noise: true })
    const { scores } = objectIn(log.results)
    if (Array.isArray(scores))
      this.out.outcome(this.key, { status, scores }, { at: objectIn(log.stats).completed_at })
  }

  private sample(sample: JsonObject): void {
    const { messages, events, attachments, scores, ...about } = sample
    const { id, epoch, uuid } = about
    const key = `${this.key}/${textIn(uuid) ?? `${id}/${epoch}`}`
    const { task, model } = this.evaluation
    this.out.mention(this.key, { agent: 'inspect', task, model })
    const at = about.completed_at ?? about.started_at
    this.out.session(key, {
      parent: this.key,
      configs: { agent: 'inspect', task, model, sample: id, epoch },
      changed_at: at,
    })
    const attached = objectIn(attachments)
    const times = timesIn(objectsIn(listIn(events)))
    for (const [index, message] of listIn(messages).entries())
      this.message(key, index, message, attached, times)
    for (const [index, event] of listIn(events).entries()) {
      const { event: kind, uuid: native, timestamp } = objectIn(event)
      this.out.raw(key, String(kind), event, {
        native: textIn(native) ?? `event ${index}`,
        at: timestamp,
        noise: true,
      })
    }
    if (!isEmpty(attached)) this.out.raw(key, 'attachments', attached, { native: 'attachments', noise: true })
    this.out.raw(key, 'sample', about, { native: 'sample', at, noise: true })
    if (isJsonObject(scores) && !isEmpty(scores)) this.out.outcome(key, outcomeOf(scores, about), { at })
    else if (scores != null) this.out.raw(key, 'scores', scores, { native: 'scores' })
    this.out.end(key)
  }

  private message(
    key: string,
    index: number,
    message: unknown,
    attached: JsonObject,
    times: (message: JsonObject) => unknown,
  ): void {
    const whole = isEmpty(attached) ? message : withAttachments(message, attached)
    const blob = chatMessageOf(whole)
    const native = textIn(objectIn(message).id) ?? index
    const at = times(objectIn(message))
    const meta = { inspect: metaOf(objectIn(whole), blob ?? {}) }
    if (blob === undefined) this.out.raw(key, 'message', message, { native, at })
    else if (blob.role === 'tool' && isJsonObject(objectIn(message).error)) {
      // A call that failed: OpenAI's messages have no mark for that.
      const { tool_call_id, content } = blob
      const result = { type: 'tool_result', tool_use_id: tool_call_id, content, is_error: true }
      this.out.message(key, 'anthropic', { role: 'user', content: [result] }, { native, at, meta })
    } else this.out.message(key, 'openai', blob, { native, at, meta })
  }
}

/** When a message was said: only the events of its sample tell. What nothing tells of was said at once after the last. */
function timesIn(events: JsonObject[]): (message: JsonObject) => unknown {
  const times = new Map<string, unknown>()
  const calls = events.filter(({ event }) => event === 'model')
  let last: unknown = calls[0]?.timestamp
  for (const { timestamp, completed, output } of calls)
    for (const choice of objectsIn(listIn(objectIn(output).choices))) {
      const id = textIn(objectIn(choice.message).id)
      if (id !== undefined) times.set(id, completed ?? timestamp)
    }
  for (const { event, id, timestamp, completed } of events)
    if (event === 'tool' && textIn(id) !== undefined) times.set(`call ${id}`, completed ?? timestamp)
  return ({ id, role, tool_call_id }) => {
    last = times.get(role === 'tool' ? `call ${tool_call_id}` : String(id)) ?? last
    return last
  }
}

/** What a message has besides what its blob says. */
function metaOf(message: JsonObject, blob: JsonObject): JsonObject {
  const rest = without(
    message,
    'role',
    'tool_call_id',
    ...(blob.content === message.content ? ['content'] : []),
  )
  return rest
}

function withAttachments(value: unknown, attached: JsonObject): unknown {
  if (typeof value === 'string')
    return value.includes('attachment://')
      ? value.replace(ATTACHMENT, (whole, hash: string) => textIn(attached[hash]) ?? whole)
      : value
  if (Array.isArray(value)) return value.map((one) => withAttachments(one, attached))
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, withAttachments(one, attached)]),
  )
}

/** `C` is correct and `I` incorrect, as scorers of Inspect have it. */
function outcomeOf(scores: JsonObject, { error, total_time }: JsonObject): JsonObject {
  const values = objectsIn(Object.values(scores)).map(({ value }) => value)
  const [first] = values
  const success =
    values.length !== 1
      ? undefined
      : first === 'C' || first === 1
        ? true
        : first === 'I' || first === 0
          ? false
          : undefined
  return without({ success, scores, error, total_time })
}

function isLog(sample: JsonObject): boolean {
  return (
    isJsonObject(sample.eval) &&
    textIn(sample.eval.task) !== undefined &&
    ('version' in sample || 'status' in sample)
  )
}

/** The beginning of a log in an archive. */
function isStart({ eval: evaluation, plan }: JsonObject): boolean {
  return isJsonObject(evaluation) && isJsonObject(plan)
}

function isSample(sample: JsonObject): boolean {
  return 'epoch' in sample && 'input' in sample && Array.isArray(sample.messages)
}
