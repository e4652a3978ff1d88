import {
  AbstractChat,
  type ChatState,
  type ChatStatus,
  type ChatTransport,
  DefaultChatTransport,
  UI_MESSAGE_STREAM_HEADERS,
  type UIMessage,
} from 'ai'

/** The state that `useChat` has, without React. */
class PlainState implements ChatState<UIMessage> {
  status: ChatStatus = 'ready'
  error: Error | undefined
  messages: UIMessage[] = []

  pushMessage = (message: UIMessage) => {
    this.messages = [...this.messages, message]
  }
  popMessage = () => {
    this.messages = this.messages.slice(0, -1)
  }
  replaceMessage = (index: number, message: UIMessage) => {
    this.messages = this.messages.with(index, structuredClone(message))
  }
  snapshot = <T>(value: T): T => structuredClone(value)
}

/** A chat as a browser has it. */
export class PlainChat extends AbstractChat<UIMessage> {
  constructor(id: string, transport: ChatTransport<UIMessage>) {
    super({ id, transport, state: new PlainState() })
  }
}

/** A transport whose requests go to these functions, as a server has them. */
export function transportTo(
  server: { post(): Promise<Response> | Response; resume(): Promise<Response> | Response },
  resumeStreamIsReplay = true,
): DefaultChatTransport<UIMessage> {
  return new DefaultChatTransport({
    resumeStreamIsReplay,
    fetch: async (_url, init) => (init?.method === 'POST' ? server.post() : server.resume()),
  })
}

/** What a server answers with a stream, or with none. */
export function streamResponse(stream: ReadableStream<string> | undefined): Response {
  if (stream === undefined) return new Response(null, { status: 204 })
  return new Response(stream.pipeThrough(new TextEncoderStream()), { headers: UI_MESSAGE_STREAM_HEADERS })
}

/** The first chunks of a stream, and then what a browser gets when its connection breaks. */
export function brokenAfter(count: number, chunks: string[]): ReadableStream<string> {
  let at = 0
  return new ReadableStream<string>({
    pull: (controller) => {
      if (at < count) controller.enqueue(chunks[at++]!)
      else controller.error(new TypeError('network error'))
    },
  })
}
