import { Socket, type SocketConstructorOpts } from 'node:net'
import pg from 'pg'

/** Bytes read from a connection at once. */
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

/** The driver's socket. Node's own reads what comes over TLS. */
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

/** Cuts bytes as they arrive into whole messages. What it returns is valid until more arrives. */
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

  /** Continues the message, and returns it when it is complete. Returns how many of the bytes were its. */
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

function lengthAt(bytes: Buffer, at: number): number {
  return at + HEAD_BYTES <= bytes.length ? 1 + bytes.readUInt32BE(at + 1) : UNKNOWN
}

export type Parameter = string | number | boolean | null | Buffer | ReadonlyArray<string | number | null>

/** Rows come as text and null only: numbers and JSON that pass through must not become JavaScript numbers. */
export type Row = Record<string, string | null>

interface Connection {
  stream: { writable: boolean; write(bytes: Buffer): void; cork(): void; uncork(): void }
  /** The texts of the statements that the server has prepared, by name. */
  parsedStatements: Record<string, string>
  parse(statement: { name: string; text: string }): void
  describe(statement: { type: 'S'; name: string }): void
}

type Value = string | Buffer | null
const { prepareValue } = (pg as unknown as { utils: { prepareValue(value: unknown): Value } }).utils

/** Execute, for all rows; and Sync. */
const EXECUTE = Buffer.from('E\0\0\0\x09\0\0\0\0\0', 'latin1')
const EXECUTE_AND_SYNC = Buffer.concat([EXECUTE, Buffer.from('S\0\0\0\x04', 'latin1')])

/** By connection and by name of a statement: a row with its columns, and nothing in them. */
const known = new WeakMap<Connection, Map<string, Row>>()

export interface Execution {
  statement: { name: string; text: string }
  parameters: readonly unknown[]
}

interface AwaitedExecution extends Execution {
  rows: Row[]
  resolve(rows: Row[]): void
  reject(error: unknown): void
}

/** A statement had no effect, because another of its transaction failed. */
export class NotExecuted extends Error {
  override readonly name = 'NotExecuted'
}

/**
 * Executions of prepared statements, sent as one piece of bytes and answered as one: whoever sends or hears wakes the other
 * once. They are one transaction: if one fails, none has an effect. The driver's own query asks for a description of the columns
 * each time, and sends four messages by themselves.
 */
class PreparedQuery {
  /** The driver puts another one in its place. */
  callback = (_error: unknown): void => {}
  private at = 0
  private emptyRows!: Map<string, Row>

  constructor(
    private readonly executions: readonly AwaitedExecution[],
    private readonly brokeConnection: (error: unknown) => boolean,
  ) {}

  /** Of the statement whose answer is read: the driver notes what the server has parsed. */
  get name(): string | undefined {
    return this.executions[this.at]?.statement.name
  }

  get text(): string | undefined {
    return this.executions[this.at]?.statement.text
  }

  submit(connection: Connection): Error | undefined {
    const { parsedStatements, stream } = connection
    for (const { statement } of this.executions) {
      const parsed = parsedStatements[statement.name]
      if (parsed !== undefined && parsed !== statement.text)
        return new Error(`two statements are named ${statement.name}`)
    }
    this.emptyRows = known.get(connection) ?? new Map<string, Row>()
    known.set(connection, this.emptyRows)
    if (!stream.writable) return undefined
    const asked = new Set<string>()
    stream.cork()
    for (const [index, { statement, parameters }] of this.executions.entries()) {
      const { name } = statement
      if (!asked.has(name)) {
        asked.add(name)
        if (parsedStatements[name] === undefined) connection.parse(statement)
        if (!this.emptyRows.has(name)) connection.describe({ type: 'S', name })
      }
      const execute = index === this.executions.length - 1 ? EXECUTE_AND_SYNC : EXECUTE
      stream.write(bindAndExecute(name, parameters, execute))
    }
    stream.uncork()
    return undefined
  }

  handleRowDescription({ fields }: { fields: Array<{ name: string }> }): void {
    this.emptyRows.set(this.name!, Object.fromEntries(fields.map(({ name }) => [name, null])))
  }

  handleDataRow({ fields }: { fields: Array<string | null> }): void {
    const { statement, rows } = this.executions[this.at]!
    const emptyRow = this.emptyRows.get(statement.name)
    const row = { ...emptyRow }
    let at = 0
    for (const name in emptyRow) row[name] = fields[at++]!
    rows.push(row)
  }

  handleCommandComplete(): void {
    this.at += 1
  }

  /** They are committed. */
  handleReadyForQuery(): void {
    this.callback(null)
    for (const { rows, resolve } of this.executions) resolve(rows)
  }

  /**
   * Nothing is committed that is known of, not even where all were executed: PostgreSQL reports each as complete before it
   * commits, and may fail or end in between.
   */
  handleError(error: unknown): void {
    this.callback(error)
    const failed = Math.min(this.at, this.executions.length - 1)
    for (const [index, { reject }] of this.executions.entries())
      reject(index === failed || this.brokeConnection(error) ? error : new NotExecuted())
  }
}

/** Binds the values to the statement, all of whose columns come as text, and executes it: as one piece of bytes. */
function bindAndExecute(name: string, given: readonly unknown[], execute: Buffer): Buffer {
  const values = given.map(prepareValue)
  const sizes = values.map((value) => (value === null ? 0 : Buffer.byteLength(value)))
  const length = sizes.reduce((sum, size) => sum + 6 + size, 12 + Buffer.byteLength(name))
  const bytes = Buffer.allocUnsafe(1 + length + execute.length)
  let at = bytes.writeInt32BE(length, bytes.write('B'))
  at += bytes.write(`\0${name}\0`, at)
  at = bytes.writeInt16BE(values.length, at)
  for (const value of values) at = bytes.writeInt16BE(Buffer.isBuffer(value) ? 1 : 0, at)
  at = bytes.writeInt16BE(values.length, at)
  for (const [index, value] of values.entries()) {
    at = bytes.writeInt32BE(value === null ? -1 : sizes[index]!, at)
    if (value !== null) at += typeof value === 'string' ? bytes.write(value, at) : value.copy(bytes, at)
  }
  execute.copy(bytes, bytes.writeInt16BE(0, at))
  return bytes
}

/**
 * Runs prepared statements at once, which are prepared where the connection does not have them yet. They are one transaction
 * if there are several; each sees what was committed before it is executed.
 * `brokeConnection`: whether an error ends the connection, so that those after it fail with it.
 * @throws NotExecuted where another one failed
 */
export function runPrepared(
  client: pg.ClientBase,
  executions: readonly Execution[],
  brokeConnection: (error: unknown) => boolean,
): Promise<Row[]>[] {
  const awaited: AwaitedExecution[] = []
  // Named one by one: V8 takes 4 us to spread an object that has functions, and a tenth of that for this.
  const answers = executions.map(
    ({ statement, parameters }) =>
      new Promise<Row[]>((resolve, reject) => {
        awaited.push({ statement, parameters, rows: [], resolve, reject })
      }),
  )
  client.query(new PreparedQuery(awaited, brokeConnection) as unknown as pg.Submittable)
  return answers
}
