import {
  type Agent,
  type AgentOptions,
  type ClientRequest,
  type IncomingMessage,
  Agent as PlainAgent,
  type RequestOptions,
  request as requestPlainly,
} from 'node:http'
import { request as requestSecurely, Agent as SecureAgent } from 'node:https'
import type { Socket } from 'node:net'

/** Bytes on the wire until the answer's own headers have ended: the handshake, informational answers, headers. */
const HEAD_BYTES_MAX = 64 * 1024
/** Informational answers to one request. */
const INFORMATIONAL_MAX = 16
/** Bytes on the wire for each byte of a body: its chunks' heads, the records of TLS, trailers. */
const WIRE_FACTOR = 1.25
/** The parser calls back for each chunk of a body. From so many on they must not be tiny, as in requests that we serve. */
const CHUNKS_MIN = 200
const CHUNK_BYTES_MIN = 16
/** Bytes that the parser is given at once, so that it can be stopped: a 64th of what may come, and not less than this. */
const PIECE_BYTES_MIN = 2 * 1024
/**
 * Bytes that a connection may have received and not passed on, and how often that is looked at: of records of TLS
 * without content Node tells nobody.
 */
const UNSEEN_BYTES_MAX = 256 * 1024
const LOOK_MS = 100

/** The answer has more bytes than it may. */
export class AnswerTooLong extends Error {
  override readonly name = 'AnswerTooLong'
}

/** Requests to a URL that others chose, or that others serve. Whoever calls it ends the request in time by `signal`. */
export function boundedRequest(
  url: URL,
  options: RequestOptions & { signal: AbortSignal },
  body_bytes_max: number,
): ClientRequest {
  const request = (url.protocol === 'https:' ? requestSecurely : requestPlainly)(url, options)
  boundAnswer(request, body_bytes_max)
  return request
}

/** The same for a client that makes its own requests: agents to give to it. `bytesOf`: what a body may have. */
export function boundedAgents(options: AgentOptions, bytesOf: (request: ClientRequest) => number) {
  return {
    httpAgent: withBounds(new PlainAgent(options), bytesOf),
    httpsAgent: withBounds(new SecureAgent(options), bytesOf),
  }
}

/** The agent, which is told of each request by a method that Node's types leave out. */
function withBounds<Kind extends Agent>(agent: Kind, bytesOf: (request: ClientRequest) => number): Kind {
  const open = agent as unknown as { addRequest(request: ClientRequest, ...rest: unknown[]): void }
  const addRequest = open.addRequest.bind(agent)
  open.addRequest = (request, ...rest) => {
    boundAnswer(request, bytesOf(request))
    addRequest(request, ...rest)
  }
  return agent
}

/**
 * Ends a request, and its connection, as soon as the answer has more bytes than it may, from the first byte that the
 * connection receives for it: whoever reads the answer sees only what HTTP makes of these. The parser gets them piece by
 * piece, as it does not stop within one.
 */
function boundAnswer(request: ClientRequest, body_bytes_max: number): void {
  let wire_bytes = 0
  let wire_bytes_max = HEAD_BYTES_MAX
  let informational = 0
  let end = (sentence: string): unknown => request.destroy(new AnswerTooLong(sentence))
  request.on('information', () => {
    informational += 1
    if (informational > INFORMATIONAL_MAX) end('too many informational answers')
  })
  request.prependOnceListener('response', (response) => {
    wire_bytes_max = wire_bytes + PIECE_BYTES_MIN + WIRE_FACTOR * body_bytes_max
    end = (sentence) => response.destroy(new AnswerTooLong(sentence))
    onTinyChunks(response, () => end('a body in tiny chunks'))
  })
  request.once('socket', (socket: Socket) => {
    const before = socket.bytesRead
    const looks = setInterval(() => {
      if (socket.bytesRead - before > wire_bytes_max + UNSEEN_BYTES_MAX) end('too many bytes')
    }, LOOK_MS).unref()
    const push = socket.push.bind(socket)
    socket.push = (chunk: Buffer | null) => {
      if (!chunk) return push(chunk)
      let goes_on = true
      for (let at = 0; at < chunk.length && !socket.destroyed; ) {
        const piece = chunk.subarray(at, at + Math.max(wire_bytes_max / 64, PIECE_BYTES_MIN))
        at += piece.length
        wire_bytes += piece.length
        if (wire_bytes > wire_bytes_max) end('too many bytes')
        else goes_on = push(piece)
      }
      return goes_on
    }
    request.once('close', () => {
      clearInterval(looks)
      delete (socket as Partial<Socket>).push
    })
  })
}

function onTinyChunks(response: IncomingMessage, end: () => void): void {
  let chunks = 0
  let bytes = 0
  const push = response.push.bind(response)
  response.push = (chunk: Buffer | null) => {
    chunks += 1
    bytes += chunk?.length ?? 0
    if (chunks > CHUNKS_MIN && bytes < chunks * CHUNK_BYTES_MIN) end()
    return push(chunk)
  }
}
