import { isJsonObject, writeJson } from '@annals/messages/json'
import type { Format, Parser } from '../format.js'
import { isEmpty, listIn, objectIn, objectsIn, textIn, without } from '../json.js'
import { storeModelCall, usedFor } from '../model_calls.js'
import type { EntryFacts, Output } from '../output.js'
import type { Piece } from '../reading/pieces.js'
import type { JsonObject } from '../records.js'
import { storeExactly } from './annals.js'

/** The Agent Trajectory Interchange Format, versions 1.0 to 1.7. */
export const ATIF: Format = {
  name: 'atif',
  title: 'trajectories in ATIF, the Agent Trajectory Interchange Format',
  shape: 'document',
  streamed: ['steps'],
  // Some write the version alone.
  knows: ({ schema_version: version, agent, session_id }) =>
    typeof version === 'string' &&
    (/^ATIF-v1\b/.test(version) ||
      (/^v?1\.\d+$/.test(version) && isJsonObject(agent) && typeof session_id === 'string')),
  open: (output) => new AtifParser(output),
}

class AtifParser implements Parser {
  private key = 'trajectory'
  private steps = 0
  private model: string | undefined

  constructor(private readonly out: Output) {}

  read(value: unknown, { member }: Piece): void {
    if (!isJsonObject(value)) return
    if (member === '') this.open(value)
    // As lines, the steps follow what is said of the trajectory.
    else if (member === 'steps' || ('step_id' in value && !('steps' in value))) this.step(this.key, value)
    else {
      if (!('steps' in value)) this.open(value)
      this.close(value)
    }
  }

  private open(trajectory: JsonObject): void {
    this.steps = 0
    this.key = openTrajectory(this.out, trajectory)
    this.model = modelOf(trajectory)
    this.early(this.key, trajectory)
  }

  /** What an export of Annals has of a session before its first step. */
  private early(key: string, { extra }: JsonObject): void {
    for (const [index, entry] of listIn(objectIn(objectIn(extra).annals).entries).entries())
      storeExactly(this.out, key, `0/${index}`, entry)
  }

  /** What else the trajectory has, which may stand after its steps. */
  private close(trajectory: JsonObject): void {
    // Without steps nothing came before.
    if (!this.out.isOpen(this.key)) this.open(trajectory)
    openTrajectory(this.out, trajectory, this.key)
    const { steps: _, subagent_trajectories, ...about } = trajectory
    if (isOfAnnals(about)) this.out.accept()
    else this.out.raw(this.key, 'trajectory', about, { native: 'trajectory', noise: true })
    const { reward, rewards, outcome } = objectIn(about.extra)
    if (reward !== undefined || rewards !== undefined || outcome !== undefined)
      this.out.outcome(this.key, without({ reward, rewards, outcome }))
    for (const one of objectsIn(subagent_trajectories)) this.subagent(one)
    if (this.steps > 0) this.out.end(this.key)
  }

  private subagent(trajectory: JsonObject): void {
    const key = openTrajectory(this.out, trajectory, undefined, this.key)
    const before = { steps: this.steps, model: this.model }
    this.steps = 0
    this.model = modelOf(trajectory)
    for (const step of objectsIn(trajectory.steps)) this.step(key, step)
    this.steps = before.steps
    this.model = before.model
    const { steps: _, ...about } = trajectory
    this.out.raw(key, 'trajectory', about, { native: 'trajectory', noise: true })
    this.out.end(key)
  }

  private step(key: string, step: JsonObject): void {
    this.steps += 1
    const native = textIn(step.step_id) ?? (typeof step.step_id === 'number' ? step.step_id : this.steps)
    // Written by an export of Annals: the step's entries as they were.
    const entries = objectIn(objectIn(step.extra).annals).entries
    if (Array.isArray(entries)) {
      for (const [index, entry] of entries.entries()) storeExactly(this.out, key, `${native}/${index}`, entry)
      return
    }
    let last_id: string | undefined
    for (const { suffix, at, ...entry } of entriesOfStep(step)) {
      const facts: EntryFacts = {
        native: `${native}${suffix}`,
        at,
        ...('meta' in entry && entry.meta && { meta: entry.meta }),
      }
      if (entry.kind === 'event') this.out.event(key, entry.type, entry.data, facts)
      else {
        const id = this.out.message(key, 'openai', entry.blob, facts)
        if (entry.blob.role === 'assistant') last_id = id
      }
    }
    const used = usedFor(step)
    if (!used || last_id === undefined) return
    const call = { ...used, model: textIn(step.model_name) ?? this.model }
    const facts = { native: `usage of ${native}`, at: step.timestamp, output: 1, last_id }
    storeModelCall(this.out, key, call, facts)
  }
}

/** Opens the session of a trajectory, or adds to it. Returns its key. */
function openTrajectory(out: Output, trajectory: JsonObject, known?: string, parent?: string): string {
  const { agent, session_id, trajectory_id, extra, notes } = trajectory
  const { name, version } = objectIn(agent)
  const model = modelOf(trajectory)
  const key = known ?? textIn(trajectory_id) ?? textIn(session_id) ?? 'trajectory'
  // Exports of Annals have the configs as they were.
  const { configs, user } = objectIn(objectIn(extra).annals)
  const told = isJsonObject(configs) ? configs : { agent: name, version, model, notes }
  out.session(key, { parent, user, configs: told })
  return key
}

function modelOf({ agent }: JsonObject): string | undefined {
  const { model_name, model } = objectIn(agent)
  return textIn(model_name) ?? textIn(model)
}

/** What an export of Annals writes around the steps, and nothing else. */
const WRITTEN = new Set(['schema_version', 'session_id', 'agent', 'extra', 'notes', 'final_metrics'])

/** Whether a trajectory has only its steps and what an export of Annals writes. */
function isOfAnnals(about: JsonObject): boolean {
  const { annals, ...others } = objectIn(about.extra)
  return isJsonObject(annals) && isEmpty(others) && Object.keys(about).every((name) => WRITTEN.has(name))
}

/** An entry of a step, with what is added to the step's name for it. */
export type StepEntry = { suffix: string; at: unknown } & (
  | { kind: 'message'; blob: JsonObject; meta?: JsonObject }
  | { kind: 'event'; type: string; data: JsonObject }
)

const SPEAKERS: Record<string, string> = { system: 'system', user: 'user', agent: 'assistant' }

/** What a step says, as messages in OpenAI's chat format; what is none is an event. */
export function entriesOfStep(step: JsonObject): StepEntry[] {
  const {
    step_id: _,
    timestamp: at,
    source,
    message,
    reasoning_content,
    tool_calls,
    observation,
    ...others
  } = step
  const role = SPEAKERS[String(source)]
  const results = objectsIn(objectIn(observation).results)
  const calls = objectsIn(tool_calls)
  if (role === undefined)
    return [{ suffix: '', at, kind: 'event', type: 'source.atif.step', data: { raw: step } }]
  // Some write their calls with the members that OpenAI has.
  const made = calls.map(({ tool_call_id, id, function_name, name, arguments: given }) => ({
    id: String(tool_call_id ?? id),
    type: 'function',
    function: {
      name: String(function_name ?? name),
      arguments: typeof given === 'string' ? given : writeJson(given ?? {}),
    },
  }))
  const told = calls.map((call) => without(call, 'tool_call_id', 'id', 'function_name', 'name', 'arguments'))
  const around = without(objectIn(observation), 'results')
  const rest = {
    ...without(others),
    ...(told.some((call) => !isEmpty(call)) && { tool_calls: told }),
    ...(!isEmpty(around) && { observation: around }),
    ...(reasoning_content != null && role !== 'assistant' && { reasoning_content }),
  }
  const blob = {
    role,
    content: message === '' && made.length > 0 ? null : contentOf(message),
    ...(role === 'assistant' && reasoning_content != null && { reasoning_content }),
    ...(made.length > 0 && { tool_calls: made }),
  }
  const first: StepEntry = {
    suffix: '',
    at,
    kind: 'message',
    blob,
    ...(!isEmpty(rest) && { meta: { atif: rest } }),
  }
  return [first, ...results.map((result, index) => resultEntry(result, index, at, made))]
}

function resultEntry(result: JsonObject, index: number, at: unknown, calls: { id: string }[]): StepEntry {
  const { source_call_id, content, ...rest } = result
  const suffix = `/${index}`
  if (!calls.some(({ id }) => id === source_call_id))
    return { suffix, at, kind: 'event', type: 'source.atif.observation', data: { raw: result } }
  const blob = { role: 'tool', tool_call_id: source_call_id, content: contentOf(content) }
  const told = without(rest)
  return { suffix, at, kind: 'message', blob, ...(!isEmpty(told) && { meta: { atif: told } }) }
}

/** Content is a text or, since version 1.6, a list of parts. Some write an object. */
function contentOf(content: unknown): unknown {
  if (typeof content === 'string') return content
  if (content == null) return ''
  if (!Array.isArray(content)) return writeJson(content)
  return listIn(content).map((part) => {
    const { type, text } = objectIn(part)
    return type === 'text' && typeof text === 'string' ? part : { type: 'text', text: writeJson(part) }
  })
}
