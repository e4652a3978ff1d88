import { createHash } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Vectors by default; or whatever else a server may do. */
export type EmbeddingsReply = 'vectors' | 'silent' | { status: number; location?: string } | { body: string }

export interface EmbeddingsServer {
  /** For ANNALS_EMBEDDINGS_URL. */
  url: string
  /** The texts of each request, in order. */
  asked: string[][]
  keys: (string | undefined)[]
  /** What it does from now on. */
  script: (texts: string[]) => EmbeddingsReply
  dimension: number
  close(): Promise<void>
}

/** Words that mean the same to the model. */
const MEANINGS = [
  ['refund', 'reimbursement', 'money', 'repay', 'restitution'],
  ['cat', 'kitten', 'feline', 'whiskers'],
  ['flight', 'plane', 'aircraft', 'aviation'],
]

/** A model whose vectors are sums of its words' vectors. Words of one meaning have the same. */
export async function startEmbeddingsServer(): Promise<EmbeddingsServer> {
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += chunk
    const { model, input } = JSON.parse(text) as { model?: string; input: string[] }
    if (request.method !== 'POST' || request.url !== '/v1/embeddings' || !model || !Array.isArray(input))
      return send(response, 400, '{"error":{"message":"not a request for embeddings"}}')
    made.asked.push(input)
    made.keys.push(request.headers.authorization?.replace(/^Bearer /, ''))
    const reply = made.script(input)
    if (reply === 'silent') return
    if (reply === 'vectors') return send(response, 200, vectorsOf(input, made.dimension))
    if ('body' in reply) return send(response, 200, reply.body)
    send(response, reply.status, '{"error":{"message":"no"}}', reply.location)
  })
  const made: EmbeddingsServer = {
    url: '',
    asked: [],
    keys: [],
    script: () => 'vectors',
    dimension: 64,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  made.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  return made
}

/** The answer with the vectors of texts, the last one first: who reads it has to go by `index`. */
export function vectorsOf(texts: readonly string[], dimension: number): string {
  const data = texts.map((text, index) => ({
    object: 'embedding',
    index,
    embedding: vectorOf(text, dimension),
  }))
  return JSON.stringify({ object: 'list', model: 'scripted', data: data.reverse() })
}

function vectorOf(text: string, dimension: number): number[] {
  const sum = new Array<number>(dimension).fill(0)
  for (const word of text.toLowerCase().match(/\p{L}+/gu) ?? ['nothing']) {
    const meaning = MEANINGS.find((words) => words.some((one) => word.startsWith(one)))?.[0] ?? word
    // What has a meaning tells more than other words.
    const weight = meaning === word && !MEANINGS.some(([first]) => first === word) ? 1 : 4
    const bytes = createHash('shake256', { outputLength: dimension }).update(meaning).digest()
    for (const [at, byte] of bytes.entries()) sum[at]! += weight * (byte / 255 - 0.5)
  }
  const length = Math.hypot(...sum)
  return sum.map((value) => value / length)
}

function send(response: ServerResponse, status: number, body: string, location?: string): void {
  response.writeHead(status, { 'content-type': 'application/json', ...(location && { location }) }).end(body)
}
