import { Socket, type SocketConstructorOpts } from 'node:net'

/** What is read from a connection at once. */
const READ_BYTES = 64 * 1024
/** A message begins with its type and its length, which counts itself but not the type. */
const HEAD_BYTES = 5
/** No answer is longer. A peer that is not PostgreSQL may seem to announce more. */
const MESSAGE_BYTES_MAX = 256 * 1024 * 1024
/** Up to this size, the buffer of a message stays for the next ones: garbage of this kind is collected late. */
const KEPT_BYTES_MAX = 1024 * 1024
/** The length of a message whose head has not arrived. */
const UNKNOWN = Number.POSITIVE_INFINITY
const NOTHING = Buffer.alloc(0)

/** What the driver connects with. What comes over TLS is read by Node's own socket. */
export function driverSocket(config?: { ssl?: unknown }): Socket {
  return config?.ssl ? new Socket() : messageSocket()
}

/**
 * A socket that reads into one buffer and hands over whole messages. Otherwise Node makes a buffer for each read,
 * and the driver copies them into one that doubles: three times the bytes of a long answer, which lie outside V8's
 * heap until V8 collects them.
 */
function messageSocket(): Socket {
  const buffer = Buffer.allocUnsafeSlow(READ_BYTES)
  const messages = new WholeMessages((bytes) => socket.emit('data', bytes))
  const callback = (length: number) => {
    messages.add(buffer.subarray(0, length))
    return true
  }
  // The types know it of connect alone, which does nothing else with it.
  const options = { onread: { buffer, callback } } as SocketConstructorOpts
  const socket = new Socket(options)
  return socket
}

/** Cuts bytes as they arrive into whole messages. What it gives is valid until more arrives. */
export class WholeMessages {
  /** The beginning of a message whose length has not arrived. */
  private head: Buffer | undefined
  /** A message of which `filled` bytes have arrived. */
  private message: Buffer | undefined
  private filled = 0
  /** Where a message was collected that arrived in parts. */
  private kept = NOTHING
  private isForeign = false

  constructor(private readonly give: (bytes: Buffer) => void) {}

  add(arrived: Buffer): void {
    if (this.isForeign) {
      this.give(Buffer.from(arrived))
      return
    }
    const bytes = this.head ? Buffer.concat([this.head, arrived]) : arrived
    this.head = undefined
    const from = this.message ? this.fill(this.message, bytes) : 0
    let to = from
    while (to + lengthAt(bytes, to) <= bytes.length) to += lengthAt(bytes, to)
    if (to > from) this.give(bytes.subarray(from, to))
    if (to < bytes.length) this.keep(bytes.subarray(to))
  }

  /** Continues the message, and gives it when it is complete. Returns how many of the bytes were its. */
  private fill(message: Buffer, bytes: Buffer): number {
    const taken = bytes.copy(message, this.filled)
    this.filled += taken
    if (this.filled === message.length) {
      this.message = undefined
      this.give(message)
    }
    return taken
  }

  private keep(beginning: Buffer): void {
    const length = lengthAt(beginning, 0)
    if (length === UNKNOWN) {
      this.head = Buffer.from(beginning)
    } else if (length > MESSAGE_BYTES_MAX) {
      this.isForeign = true
      this.give(Buffer.from(beginning))
    } else {
      if (this.kept.length < length) this.kept = Buffer.allocUnsafeSlow(length)
      this.message = this.kept.subarray(0, length)
      this.filled = beginning.copy(this.message)
      if (length > KEPT_BYTES_MAX) this.kept = NOTHING
    }
  }
}

/** The length of the message that begins there. */
function lengthAt(bytes: Buffer, at: number): number {
  return at + HEAD_BYTES <= bytes.length ? 1 + bytes.readUInt32BE(at + 1) : UNKNOWN
}
