import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** An entry of a run, as the model is shown it. */
export interface SeenEntry {
  seq: number
  by: string
  text: string
}

/** What the model is asked: `data` is the user message. */
export interface Asked {
  step: 'reflect' | 'curate' | 'compact'
  /** What it was sent. */
  prompt: { system: string; user: string }
  /** Its API key. */
  key: string | undefined
  data: {
    runs?: { run: string; outcome: string; entries: SeenEntry[] }[]
    candidates?: { number: number; kind: string; text: string }[]
    statements?: { number: number; kind: string; text: string }[]
    /** Of a summary: those before, and what follows. */
    earlier?: string[]
    entries?: SeenEntry[]
  }
  tokens_in: number
}

/** What the server does: answers with a value as JSON, or misbehaves. */
export type Reply =
  | { answer: unknown }
  | { status: number; body?: string }
  | { content: string; finish_reason?: string }
  | { body: string }
  | 'reset'
  /** Headers at once, and a byte now and then. */
  | 'drip'
  | 'silent'
  | 'endless'

export type Script = (asked: Asked) => Reply | Promise<Reply>

export interface ModelServer {
  /** For ANNALS_MODEL_URL. */
  url: string
  /** All that was asked, in order. */
  asked: Asked[]
  /** What it does from now on. */
  script: Script
  close(): Promise<void>
}

/** A model that says what a script says, in the protocol of OpenAI's chat completions. Strict about what it is sent. */
export async function startModelServer(script: Script): Promise<ModelServer> {
  const asked: Asked[] = []
  const server = createServer((request, response) => {
    void take(request, response).catch(() => response.destroy())
  })
  const model: ModelServer = {
    url: '',
    asked,
    script,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += chunk
    const isChat = request.method === 'POST' && request.url === '/v1/chat/completions'
    const seen = isChat && readAsked(text, request.headers.authorization?.replace(/^Bearer /, ''))
    if (!seen) return send(response, 400, '{"error":{"message":"not a chat completion of a JSON schema"}}')
    asked.push(seen)
    await reply(response, seen, await model.script(seen))
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  model.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  return model
}

function readAsked(text: string, key: string | undefined): Asked | undefined {
  const { model, messages, response_format, max_completion_tokens } = JSON.parse(text)
  const { name, strict, schema } = response_format?.json_schema ?? {}
  const [system, user] = messages
  const isWhole =
    typeof model === 'string' &&
    max_completion_tokens > 0 &&
    system.role === 'system' &&
    user.role === 'user' &&
    response_format.type === 'json_schema' &&
    strict === true &&
    schema.additionalProperties === false
  if (!isWhole) return undefined
  const input = JSON.stringify([name, system.content, user.content])
  const prompt = { system: system.content, user: user.content }
  return {
    step: name,
    prompt,
    key,
    data: JSON.parse(user.content),
    tokens_in: Math.ceil(input.length / 4),
  }
}

async function reply(response: ServerResponse, { tokens_in }: Asked, said: Reply): Promise<void> {
  if (said === 'silent') return
  if (said === 'reset') {
    response.destroy()
    return
  }
  if (said === 'drip' || said === 'endless') {
    response.writeHead(200, { 'content-type': 'application/json' })
    const piece = said === 'drip' ? ' ' : ' '.repeat(65_536)
    while (response.writable && !response.destroyed) {
      response.write(piece)
      await sleep(said === 'drip' ? 100 : 5)
    }
    return
  }
  if ('status' in said) return send(response, said.status, said.body ?? '{"error":{"message":"no"}}')
  if ('body' in said) return send(response, 200, said.body)
  const { content, finish_reason = 'stop' } =
    'answer' in said ? { content: JSON.stringify(said.answer) } : said
  const usage = { prompt_tokens: tokens_in, completion_tokens: 50, total_tokens: tokens_in + 50 }
  const message = { role: 'assistant', content, refusal: null }
  const choices = [{ index: 0, finish_reason, logprobs: null, message }]
  const completion = {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'scripted',
    choices,
    usage,
  }
  send(response, 200, JSON.stringify(completion))
}

function send(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(body)
}
