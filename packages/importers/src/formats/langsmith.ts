import { isJsonObject } from '@annals/messages/json'
import type { Format, Parser } from '../format.js'
import { listIn, objectIn, objectsIn, textIn, without } from '../json.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'
import { byEnd, firstText, parsed, type Span, Traces } from '../traces.js'

/** Runs, as the API and bulk exports have them, alone or with those below them. */
export const LANGSMITH: Format = {
  name: 'langsmith',
  title: 'runs exported from LangSmith',
  knows: (sample) => isRun(sample) || objectsIn(sample.runs).some(isRun),
  open: (output) => new LangSmithParser(output, new Traces(output, 'told')),
}

class LangSmithParser implements Parser {
  constructor(
    private readonly out: Output,
    private readonly traces: Traces,
  ) {}

  read(value: unknown): void {
    if (!isJsonObject(value)) return
    if (isRun(value)) this.run(value)
    else {
      for (const run of byEnd(value.runs, 'start_time', 'end_time')) this.run(run)
      const others = without(value, 'runs')
      if (Object.keys(others).length > 0 && listIn(value.runs).length > 0)
        this.out.raw(keyOf(objectIn(listIn(value.runs)[0])), 'page', others, { noise: true })
    }
  }

  end(): void {
    this.traces.end()
  }

  private run(run: JsonObject): void {
    const { child_runs, feedback_stats, ...own } = run
    for (const child of byEnd(child_runs, 'start_time', 'end_time')) this.run(child)
    this.traces.store(spanOf(own))
    const key = keyOf(own)
    const stats = parsed(feedback_stats)
    if (isJsonObject(stats) && Object.keys(stats).length > 0)
      this.out.outcome(key, { feedback: stats }, { native: `feedback ${idOf(own)}`, at: own.end_time })
  }
}

function spanOf(run: JsonObject): Span {
  const { trace_id, parent_run_id, name, start_time, end_time } = run
  const run_type = typeOf(run)
  const id = idOf(run)
  const extra = objectIn(parsed(run.extra))
  const metadata = { ...objectIn(extra.metadata), ...objectIn(parsed(run.metadata)) }
  const inputs = parsed(run.inputs)
  const outputs = parsed(run.outputs)
  const is_tool = run_type === 'tool'
  return {
    id,
    trace_id: firstText(trace_id, id)!,
    parent_id: textIn(parent_run_id),
    session: keyOf(run),
    user: metadata.user_id,
    name: textIn(name) ?? String(run_type),
    kind: run_type === 'llm' ? 'model' : is_tool ? 'tool' : 'other',
    start: start_time,
    end: end_time,
    model: metadata.ls_model_name ?? objectIn(extra.invocation_params).model,
    usage: usageOf(run, objectIn(outputs)),
    error: run.error,
    input: is_tool && typeof objectIn(inputs).input === 'string' ? parsed(objectIn(inputs).input) : inputs,
    output: is_tool ? (objectIn(outputs).output ?? outputs) : outputs,
    call_id: is_tool ? textIn(objectIn(objectIn(outputs).output).tool_call_id) : undefined,
    configs: parent_run_id == null ? without({ agent: name, tags: parsed(run.tags) }) : {},
    raw: run,
  }
}

/** The command line of LangSmith writes `run_id`. */
function idOf({ id, run_id, dotted_order }: JsonObject): string {
  return firstText(id, run_id, textIn(dotted_order)?.split('.').at(-1)) ?? 'run'
}

/** What the answer says, or its message does, or else the run of a model: that of a chain has the sum of those below. */
function usageOf(run: JsonObject, outputs: JsonObject): unknown {
  const [generation] = listIn(outputs.generations).flat()
  const { message } = objectIn(generation)
  const { usage_metadata } = { ...objectIn(message), ...objectIn(objectIn(message).kwargs) }
  const said = outputs.usage_metadata ?? objectIn(outputs.llm_output).token_usage ?? usage_metadata
  if (said != null || typeOf(run) !== 'llm') return said
  const { prompt_tokens, completion_tokens, total_tokens } = run
  return { prompt_tokens, completion_tokens, total_tokens }
}

/** The thread that a run belongs to, or its trace. */
function keyOf(run: JsonObject): string {
  const metadata = { ...objectIn(objectIn(parsed(run.extra)).metadata), ...objectIn(parsed(run.metadata)) }
  const { session_id, thread_id, conversation_id } = metadata
  return firstText(thread_id, session_id, conversation_id, run.thread_id, run.trace_id, idOf(run))!
}

/** An export may leave out what a run is; only models are asked lists of messages, or prompts. */
function typeOf({ run_type, inputs }: JsonObject): string {
  const { messages, prompts } = objectIn(parsed(inputs))
  const is_model = Array.isArray(prompts) || (Array.isArray(messages) && messages.some(Array.isArray))
  return textIn(run_type) ?? (is_model ? 'llm' : 'chain')
}

function isRun(sample: JsonObject): boolean {
  const told = ['id', 'name', 'inputs', 'outputs', 'start_time', 'end_time']
  if (sample.run_type === undefined) return told.every((name) => name in sample)
  return (
    typeof sample.run_type === 'string' &&
    ('inputs' in sample || 'dotted_order' in sample || 'trace_id' in sample)
  )
}
