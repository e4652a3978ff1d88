import { isJsonObject } from '@annals/messages/json'
import { resultOf, type Stored } from '../chat_messages.js'
import { type FileFacts, type Format, keyOfFile, type Parser } from '../format.js'
import { listIn, objectIn, objectsIn, textIn, without } from '../json.js'
import type { Output } from '../output.js'
import type { Piece } from '../reading/pieces.js'
import type { JsonObject } from '../records.js'
import { timeOf } from '../times.js'

/** A session is held while its log is replayed. */
const LOG_BYTES_MAX = 192 * 1024 * 1024
const ITEMS_MAX = 1_000_000

/** Sessions of the chat in VS Code: documents, and since 2026 logs of what changed in one. */
export const VSCODE_CHAT: Format = {
  name: 'vscode-chat',
  title: 'sessions of the chat in VS Code (GitHub Copilot)',
  knows: (sample) => isSession(sample) || isChange(sample),
  open: (output, file) => new VsCodeChat(output, file),
}

function isSession({
  requests,
  responderUsername,
  sessionId,
  version,
  initialLocation,
}: JsonObject): boolean {
  if (!Array.isArray(requests)) return false
  const is_named = typeof sessionId === 'string' || typeof responderUsername === 'string'
  // An export has no version. Of a large file's head, there may be no whole request.
  return (is_named && (version ?? initialLocation) !== undefined) || objectsIn(requests).some(isRequest)
}

function isRequest({ requestId, message }: JsonObject): boolean {
  return typeof requestId === 'string' && (isJsonObject(message) || typeof message === 'string')
}

function isChange({ kind, v, k }: JsonObject): boolean {
  if (kind === 0) return isJsonObject(v) && isSession(v)
  return (kind === 1 || kind === 2 || kind === 3) && Array.isArray(k) && k.length > 0
}

class VsCodeChat implements Parser {
  private state: JsonObject | undefined

  constructor(
    private readonly out: Output,
    private readonly file: FileFacts,
  ) {}

  read(value: unknown, { end_offset }: Piece): void {
    if (!isJsonObject(value)) return
    if (isSession(value)) this.store(value)
    if (!isChange(value)) return
    if (end_offset > LOG_BYTES_MAX) this.out.refuse(`the log has more than ${LOG_BYTES_MAX} bytes`)
    else if (this.changes(value)) this.out.accept()
    else this.out.refuse('it changes something that the log does not contain')
  }

  private changes(line: JsonObject): boolean {
    if (line.kind !== 0) return this.state !== undefined && applied(this.state, line)
    this.state = line.v as JsonObject
    return true
  }

  end(): void {
    if (this.state) this.store(this.state)
  }

  private store(session: JsonObject): void {
    const { requests, ...about } = session
    const key = textIn(about.sessionId) ?? keyOfFile(this.file)
    const all = objectsIn(requests)
    const title = textIn(about.customTitle)
    this.out.session(key, {
      configs: { agent: textIn(about.responderUsername) ?? 'vscode-chat', title },
      changed_at: about.lastMessageDate ?? about.creationDate,
    })
    for (const [index, request] of all.entries()) this.request(key, request, index, index === all.length - 1)
    for (const [index, one] of listIn(requests).entries())
      if (!isJsonObject(one)) this.out.raw(key, 'request', one, { native: `item ${index}` })
    this.out.raw(key, 'session', about, { native: 'session', at: about.creationDate, noise: true })
    this.out.end(key)
  }

  private request(key: string, request: JsonObject, index: number, is_last: boolean): void {
    const { message, response, result, timestamp, modelId, modelState } = request
    const native = textIn(request.requestId) ?? `request ${index}`
    if (message === undefined) {
      this.out.raw(key, 'request', request, { native, at: timestamp })
      return
    }
    if (textIn(modelId)) this.out.session(key, { configs: { model: modelId } })
    const asked =
      typeof message === 'string' ? message : (textIn(objectIn(message).text) ?? partsText(message))
    const { variables } = objectIn(request.variableData)
    const attached = objectsIn(variables).map(({ name }) => name)
    const meta = attached.length > 0 ? { meta: { vscode: { attached } } } : {}
    this.out.message(key, 'openai', { role: 'user', content: asked }, { native, at: timestamp, ...meta })
    // The answer is not there yet, and would be named as if it were.
    if (
      is_last &&
      result == null &&
      modelState !== undefined &&
      ![1, 2, 3].includes(objectIn(modelState).value as number)
    )
      return
    const { timings, errorDetails, metadata } = objectIn(result)
    const { totalElapsed } = objectIn(timings)
    const ended = endOf(timestamp, totalElapsed, objectIn(modelState).completedAt)
    const { toolCallRounds, toolCallResults } = objectIn(metadata)
    const rounds = objectsIn(toolCallRounds)
    const answered =
      rounds.length > 0 ? ofRounds(rounds, objectIn(toolCallResults)) : ofParts(listIn(response))
    for (const [nth, { format, blob }] of answered.entries())
      this.out.message(key, format, blob, { native: `${native}/${nth}`, at: ended ?? timestamp })
    const { message: error } = objectIn(errorDetails)
    const usage = usageOf(request, objectIn(metadata))
    const data = without({
      operation: 'model',
      name: 'chat request',
      model: modelId,
      started_at: timeOf(timestamp),
      ended_at: ended,
      duration_ms: totalElapsed,
      usage,
      error: error ?? (request.isCanceled === true ? 'cancelled' : undefined),
      raw: request,
    })
    this.out.event(key, 'otel.span', data, { native: `span ${native}`, at: ended ?? timestamp })
  }
}

/** What the model was called for, round by round, with the results of its tools. */
function ofRounds(rounds: JsonObject[], results: JsonObject): Stored[] {
  return rounds.flatMap(({ response, toolCalls, thinking }) => {
    const calls = objectsIn(toolCalls)
    const { text } = objectIn(thinking)
    const thought = Array.isArray(text) ? text.join('\n') : textIn(text)
    const said = answer(textIn(response) ?? '', thought, calls)
    const told = calls.flatMap(({ id }) => {
      const result = results[String(id)]
      return result === undefined ? [] : [resultOf(String(id), textOfResult(result), false)]
    })
    return [...said, ...told]
  })
}

function answer(text: string, thought: string | undefined, calls: JsonObject[]): Stored[] {
  if (text === '' && thought === undefined && calls.length === 0) return []
  const tool_calls = calls.map(({ id, name, arguments: given }) => ({
    id: String(id),
    type: 'function',
    function: {
      name: textIn(name) ?? 'unknown',
      arguments: typeof given === 'string' ? given : JSON.stringify(given ?? {}),
    },
  }))
  const blob = {
    role: 'assistant',
    content: text === '' && calls.length > 0 ? null : text,
    ...(calls.length > 0 && { tool_calls }),
    ...(thought !== undefined && { reasoning_content: thought }),
  }
  return [{ format: 'openai', blob }]
}

/** What the page shows of an answer: texts, thoughts, and tools that were called. */
function ofParts(parts: unknown[]): Stored[] {
  const stored: Stored[] = []
  let text = ''
  let thought: string | undefined
  const flush = (calls: JsonObject[] = []) => {
    stored.push(...answer(text, thought, calls))
    text = ''
    thought = undefined
  }
  for (const part of objectsIn(parts)) {
    const { kind, value, content } = part
    if (kind === 'toolInvocationSerialized') {
      const id = textIn(part.toolCallId) ?? `call_${stored.length}`
      const { input, output, isError } = objectIn(part.resultDetails)
      const given = input ??
        objectIn(part.toolSpecificData).rawInput ?? { said: shownText(part.invocationMessage) }
      flush([{ id, name: part.toolId, arguments: given }])
      const told = output === undefined ? shownText(part.pastTenseMessage) : textOfResult(output)
      if (part.isComplete !== false) stored.push(resultOf(id, told, isError === true))
    } else if (kind === 'thinking')
      thought = [thought, shownText(value)].filter((one) => textIn(one)).join('\n')
    else if (kind === undefined || kind === 'markdownContent' || kind === 'markdownVuln')
      text += shownText(value ?? content)
    else if (kind === 'inlineReference')
      text += `\`${textIn(part.name) ?? nameOfReference(part.inlineReference)}\``
  }
  flush()
  return stored
}

function shownText(value: unknown): string {
  if (Array.isArray(value)) return value.map(shownText).join('\n')
  return typeof value === 'string' ? value : (textIn(objectIn(value).value) ?? '')
}

function nameOfReference(reference: unknown): string {
  const { name, path, location } = { ...objectIn(objectIn(reference).uri), ...objectIn(reference) }
  return textIn(name) ?? textIn(path) ?? (location === undefined ? '' : nameOfReference(location))
}

function partsText(message: unknown): string {
  return objectsIn(objectIn(message).parts)
    .map(({ text }) => textIn(text) ?? '')
    .join('')
}

function textOfResult(result: unknown): string {
  const content = isJsonObject(result) && 'content' in result ? result.content : result
  const list = listIn(content).length > 0 ? listIn(content) : [content]
  return list
    .map((one) => {
      const value = isJsonObject(one) && 'value' in one ? one.value : one
      return typeof value === 'string' ? value : JSON.stringify(value ?? '')
    })
    .join('\n')
}

function usageOf(request: JsonObject, metadata: JsonObject): JsonObject | undefined {
  const { promptTokens, completionTokens } = { ...objectIn(request.usage), ...objectIn(metadata.usage) }
  const usage = without({
    input_tokens: promptTokens ?? metadata.promptTokens ?? request.promptTokens,
    output_tokens: completionTokens ?? metadata.outputTokens ?? request.completionTokens,
  })
  return Object.keys(usage).length > 0 ? usage : undefined
}

function endOf(began: unknown, elapsed: unknown, completed: unknown): string | undefined {
  if (typeof completed === 'number') return timeOf(completed)
  return typeof began === 'number' && typeof elapsed === 'number' ? timeOf(began + elapsed) : undefined
}

/** Carries out a line of the log: 1 sets, 2 cuts a list at `i` and adds to it, 3 deletes. */
function applied(state: JsonObject, { kind, k, v, i }: JsonObject): boolean {
  const path = listIn(k)
  let at: unknown = state
  for (const step of path.slice(0, -1)) at = memberOf(at, step)
  const last = path.at(-1)
  if (typeof at !== 'object' || at === null || !isStep(at, last)) return false
  const holder = at as JsonObject
  const name = String(last)
  if (kind === 1) holder[name] = v
  else if (kind === 3) delete holder[name]
  else {
    const list = Array.isArray(holder[name]) ? (holder[name] as unknown[]) : []
    if (typeof i === 'number' && i < list.length) list.length = Math.max(0, Math.floor(i))
    for (const one of listIn(v)) list.push(one)
    holder[name] = list
  }
  return true
}

function memberOf(at: unknown, step: unknown): unknown {
  return typeof at === 'object' && at !== null && Object.hasOwn(at, String(step))
    ? (at as JsonObject)[String(step)]
    : undefined
}

function isStep(at: object, step: unknown): boolean {
  if (Array.isArray(at))
    return (
      Number.isInteger(step) && (step as number) >= 0 && (step as number) <= Math.min(at.length, ITEMS_MAX)
    )
  return typeof step === 'string' && step !== '__proto__'
}
