import { isJsonObject, writeJson } from '@annals/messages/json'
import { Conversations } from '../conversations.js'
import { type FileFacts, type Format, keyOfFile, type Parser } from '../format.js'
import { isEmpty, listIn, objectIn, objectsIn, textIn, without } from '../json.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'

export const GEMINI: Format = {
  name: 'gemini',
  title: 'conversations in the format of the Gemini API, prompts of AI Studio, and sessions of Gemini CLI',
  knows: (sample) =>
    isContents(sample) ||
    Array.isArray(sample.candidates) ||
    isContents(objectIn(sample.request)) ||
    Array.isArray(objectIn(sample.chunkedPrompt).chunks) ||
    isContent(sample) ||
    isCliSession(sample),
  open: (output, file) => new GeminiParser(output, file),
}

class GeminiParser implements Parser {
  private readonly conversations: Conversations
  private readonly file_key: string

  constructor(
    private readonly out: Output,
    file: FileFacts,
  ) {
    this.conversations = new Conversations(out, 'gemini')
    this.file_key = keyOfFile(file)
  }

  read(value: unknown): void {
    if (Array.isArray(value)) this.conversations.store({}, value)
    else if (!isJsonObject(value)) return
    else if (isContent(value)) this.out.message(this.file_key, 'gemini', value)
    else if (isCliSession(value)) this.cliSession(value)
    else if (isJsonObject(value.chunkedPrompt)) this.studioPrompt(value)
    else if (isJsonObject(value.request)) {
      const { request, response, ...rest } = value
      this.store({ ...rest, ...(request as JsonObject), ...objectIn(response) })
    } else this.store(value)
  }

  private store(value: JsonObject): void {
    const { contents, systemInstruction, system_instruction, candidates, ...about } = value
    const [first, ...others] = objectsIn(candidates)
    const { content, ...candidate } = first ?? {}
    const model = about.model ?? about.modelVersion
    const instruction = systemInstruction ?? system_instruction
    const said = systemOf(instruction)
    const rest = {
      ...about,
      model,
      ...candidate,
      ...(others.length > 0 && { candidates: others }),
      ...(said.length === 0 && { system_instruction: instruction }),
    }
    this.conversations.store(rest, [
      ...said,
      ...(isJsonObject(contents) ? [contents] : listIn(contents)),
      ...(content === undefined ? [] : [{ role: 'model', ...objectIn(content) }]),
    ])
  }

  /** AI Studio keeps a prompt as chunks, each of which is a text, a thought or a file. */
  private studioPrompt({ chunkedPrompt, systemInstruction, runSettings, ...about }: JsonObject): void {
    const { chunks, ...more } = objectIn(chunkedPrompt)
    const said = listIn(chunks).map((chunk) => (isJsonObject(chunk) ? contentOfChunk(chunk) : chunk))
    const { model } = objectIn(runSettings)
    const rest = {
      ...about,
      model,
      run_settings: runSettings,
      ...(!isEmpty(more) && { chunked_prompt: more }),
    }
    const instructed = systemOf(systemInstruction)
    const unsaid = instructed.length === 0 ? { system_instruction: systemInstruction } : {}
    this.conversations.store({ ...rest, ...unsaid }, [...instructed, ...said])
  }

  private cliSession({ messages, ...about }: JsonObject): void {
    const key = String(about.sessionId)
    const { startTime, lastUpdated, summary } = about
    this.out.session(key, { configs: { agent: 'gemini-cli', title: summary }, changed_at: lastUpdated })
    let model: unknown
    for (const [index, message] of listIn(messages).entries()) {
      const { id, timestamp, type, content, thoughts, toolCalls, ...rest } = objectIn(message)
      const native = textIn(id) ?? index
      const is_model = type === 'gemini'
      if (is_model && rest.model !== model) {
        model = rest.model
        this.out.session(key, { configs: { model } })
      }
      if (!is_model && type !== 'user') {
        this.out.raw(key, String(type), message, { native, at: timestamp, noise: true })
        continue
      }
      const thought = objectsIn(thoughts).map(({ subject, description }) => ({
        text: [subject, description].filter((text) => typeof text === 'string').join('\n'),
        thought: true,
      }))
      const calls = objectsIn(toolCalls)
      const called = calls.map((call) => ({
        functionCall: { id: call.id, name: call.name, args: call.args },
      }))
      const text = typeof content === 'string' ? (content === '' ? [] : [{ text: content }]) : listIn(content)
      const blob = { role: is_model ? 'model' : 'user', parts: [...thought, ...text, ...called] }
      const told = { thoughts: objectsIn(thoughts).map((one) => without(one, 'subject', 'description')) }
      const meta = { gemini: { ...without(rest), ...(told.thoughts.some((one) => !isEmpty(one)) && told) } }
      this.out.message(key, 'gemini', blob, { native, at: timestamp, ...(!isEmpty(meta.gemini) && { meta }) })
      for (const [at, call] of calls.entries()) this.cliResult(key, `${native}/${at}`, call)
    }
    this.out.raw(key, 'session', about, { native: 'session', at: startTime, noise: true })
    this.out.end(key)
  }

  private cliResult(
    key: string,
    native: string,
    { id, name, args: _, result, timestamp, ...rest }: JsonObject,
  ): void {
    const found = objectsIn(result).find((part) => isJsonObject(part.functionResponse))
    const is_known = found !== undefined && listIn(result).length === 1
    const is_failed = rest.status === 'error'
    const shown = is_failed ? { error: rest.resultDisplay ?? result ?? 'error' } : { output: result ?? null }
    const functionResponse = is_known && !is_failed ? found.functionResponse : { id, name, response: shown }
    const meta = {
      gemini: {
        ...without(rest),
        ...(is_known && !isEmpty(without(found, 'functionResponse')) && { part: found }),
      },
    }
    const whole = is_known && is_failed ? { gemini: { ...meta.gemini, result } } : meta
    this.out.message(
      key,
      'gemini',
      { role: 'user', parts: [{ functionResponse }] },
      { native, at: timestamp, meta: whole },
    )
  }
}

function systemOf(instruction: unknown): unknown[] {
  const text = typeof instruction === 'string' ? instruction : textIn(objectIn(instruction).text)
  if (text !== undefined)
    return text === '' ? [] : [{ ...objectIn(instruction), role: 'system', parts: [{ text }] }]
  return isJsonObject(instruction) && Array.isArray(instruction.parts)
    ? [{ ...instruction, role: 'system' }]
    : []
}

function contentOfChunk(chunk: JsonObject): JsonObject {
  const { role = 'user', text, isThought, ...rest } = chunk
  const part = {
    text: typeof text === 'string' ? text : writeJson(rest),
    ...(isThought === true && { thought: true }),
  }
  return { role, parts: [part], ...(!isEmpty(rest) && { chunk: rest }) }
}

function isContents({ contents }: JsonObject): boolean {
  return isJsonObject(contents) ? isContent(contents) : objectsIn(contents).some(isContent)
}

function isContent({ role, parts }: JsonObject): boolean {
  return Array.isArray(parts) && (role === 'model' || role === 'user')
}

function isCliSession({ sessionId, messages, projectHash }: JsonObject): boolean {
  return (
    typeof sessionId === 'string' &&
    Array.isArray(messages) &&
    (projectHash !== undefined || objectsIn(messages).some(({ type }) => type === 'gemini'))
  )
}
