/** One event of a stream (https://html.spec.whatwg.org/multipage/server-sent-events.html). */
export interface StreamEvent {
  /** The last id of the stream, with this event or before it. */
  id: string
  type: string
  data: string
}

/**
 * Reads an event stream from its bytes, however they are split. Between calls it keeps a character with missing
 * bytes, a line without its end, and an event without its final empty line: an incomplete event is never returned.
 */
export class EventStreamParser {
  /** ms that the server asked to wait before connecting again. */
  retry_ms: number | undefined
  /** The last id of the events, and of blocks without data, that are complete. */
  last_id = ''
  readonly #decoder = new TextDecoder()
  #line = ''
  #after_cr = false
  #id = ''
  #type = ''
  #data: string[] = []

  /** The events that these bytes complete. */
  read(bytes: Uint8Array): StreamEvent[] {
    const events: StreamEvent[] = []
    let text = this.#decoder.decode(bytes, { stream: true })
    if (text === '') return events
    // A CR already ended its line; its LF may come with the next bytes.
    if (this.#after_cr && text.startsWith('\n')) text = text.slice(1)
    this.#after_cr = text.endsWith('\r')
    const lines = text.split(/\r\n|\n|\r/)
    lines[0] = this.#line + lines[0]
    this.#line = lines.pop()!
    for (const line of lines) {
      if (line !== '') {
        this.#field(line)
        continue
      }
      this.last_id = this.#id
      if (this.#data.length > 0) events.push(this.#event())
      else this.#type = ''
    }
    return events
  }

  #field(line: string): void {
    const colon = line.indexOf(':')
    if (colon === 0) return
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1))
    if (name === 'data') this.#data.push(value)
    else if (name === 'event') this.#type = value
    else if (name === 'id' && !value.includes('\0')) this.#id = value
    else if (name === 'retry' && /^\d+$/.test(value)) this.retry_ms = Number(value)
  }

  #event(): StreamEvent {
    const event = { id: this.#id, type: this.#type || 'message', data: this.#data.join('\n') }
    this.#type = ''
    this.#data = []
    return event
  }
}
