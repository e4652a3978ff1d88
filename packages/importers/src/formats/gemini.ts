import { isJsonObject, writeJson } from '@annals/messages/json'
import { Conversations } from '../conversations.js'
import { type FileFacts, type Format, keyOfFile, type Parser } from '../format.js'
import { isEmpty, listIn, objectIn, objectsIn, textIn } from '../json.js'
import type { Output } from '../output.js'
import type { JsonObject } from '../records.js'
import { GeminiCli, isOfGeminiCli, isOfQwenCode } from './gemini_cli.js'
import { GeminiStream, isOfGeminiStream } from './gemini_stream.js'

export const GEMINI: Format = {
  name: 'gemini',
  title: 'conversations in the format of the Gemini API, prompts of AI Studio, and sessions of Gemini CLI',
  knows: (sample) =>
    isContents(sample) ||
    Array.isArray(sample.candidates) ||
    isContents(objectIn(sample.request)) ||
    Array.isArray(objectIn(sample.chunkedPrompt).chunks) ||
    isContent(sample) ||
    objectsIn(sample.history).some(isContent) ||
    Array.isArray(objectIn(sample.response).candidates) ||
    isOfGeminiCli(sample) ||
    isOfGeminiStream(sample) ||
    isOfQwenCode(sample),
  open: (output, file) => new GeminiParser(output, file),
}

class GeminiParser implements Parser {
  private readonly conversations: Conversations
  private readonly cli: GeminiCli
  private readonly stream: GeminiStream
  private readonly file_key: string

  constructor(
    private readonly out: Output,
    file: FileFacts,
  ) {
    this.conversations = new Conversations(out, 'gemini')
    this.cli = new GeminiCli(out, file)
    this.stream = new GeminiStream(out, file)
    this.file_key = keyOfFile(file)
  }

  read(value: unknown): void {
    if (Array.isArray(value)) this.conversations.store({}, value)
    else if (!isJsonObject(value)) return
    else if (typeof value.sessionId === 'string' && typeof value.uuid === 'string') this.qwenLine(value)
    else if (isContent(value)) this.out.message(this.file_key, 'gemini', value)
    else if (isOfGeminiCli(value)) this.cli.read(value)
    else if (this.stream.knows(value)) this.stream.read(value)
    else if (isJsonObject(value.chunkedPrompt)) this.studioPrompt(value)
    else if (isJsonObject(value.request) || isJsonObject(value.response)) {
      const { request, response, ...rest } = value
      this.store({ ...rest, ...objectIn(request), ...objectIn(response) })
    } else if (Array.isArray(value.history)) {
      const { history, ...rest } = value
      this.store({ ...rest, contents: history })
    } else this.store(value)
  }

  end(): void {
    this.cli.end()
    this.stream.end()
  }

  /** A line of Qwen Code: a message of Gemini, or what happened. */
  private qwenLine(line: JsonObject): void {
    const { message, ...rest } = line
    const { sessionId, uuid, timestamp, cwd, model, type, version } = rest
    const key = String(sessionId)
    this.out.session(key, { configs: { agent: 'qwen-code', cwd, model, version } })
    const facts = { native: String(uuid), at: timestamp }
    if (isJsonObject(message)) this.out.message(key, 'gemini', message, { ...facts, meta: { qwen: rest } })
    else this.out.raw(key, textIn(rest.subtype) ?? String(type), line, { ...facts, noise: true })
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
  const is_own = Array.isArray(parts) && parts.every((part) => typeof objectIn(part).type !== 'string')
  return is_own && (role === 'model' || role === 'user')
}
