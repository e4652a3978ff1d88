import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import type { Random } from '../../lab/random.ts'

/** What the proxy does to traffic while the rule applies. */
export interface Rule {
  /** Cut a request or an answer after some of its bytes, or hold answers back. */
  do: 'cut_request' | 'cut_answer' | 'delay_answer'
  /** The share of messages affected. */
  probability: number
  delay_ms?: number
}

/**
 * A TCP proxy in front of a node or a database: its address stays the same while the target restarts, and it can cut
 * connections. If nothing listens at the target, it closes the connection.
 */
export class Line {
  /** Where it listens. */
  port = 0
  /** The port behind it, undefined while there is none. */
  target: number | undefined
  rule: Rule | undefined
  /** How often a rule was applied. */
  hits = 0
  /** Number of delayed messages at the moment. */
  held = 0
  private readonly server: Server
  private readonly random: Random
  private readonly sockets = new Set<Socket>()

  private constructor(random: Random) {
    this.random = random
    this.server = createServer((near) => this.join(near))
  }

  static async open(random: Random, target?: number): Promise<Line> {
    const line = new Line(random)
    line.target = target
    line.server.listen(0, '127.0.0.1')
    await once(line.server, 'listening')
    line.port = (line.server.address() as AddressInfo).port
    return line
  }

  close(): void {
    this.server.close()
    for (const socket of this.sockets) socket.destroy()
  }

  private join(near: Socket): void {
    this.sockets.add(near)
    near.on('error', () => {})
    if (this.target === undefined) {
      near.destroy()
      return
    }
    const far = connect(this.target, '127.0.0.1')
    this.sockets.add(far)
    far.on('error', () => {})
    for (const socket of [near, far]) {
      socket.setNoDelay(true)
      socket.on('close', () => {
        this.sockets.delete(socket)
        near.destroy()
        far.destroy()
      })
    }
    near.on('end', () => far.end())
    far.on('end', () => near.end())
    near.on('data', (piece) => this.pass(piece, near, far, 'cut_request'))
    far.on('data', (piece) => this.pass(piece, far, near, 'cut_answer'))
  }

  private pass(piece: Buffer, from: Socket, to: Socket, cut: 'cut_request' | 'cut_answer'): void {
    const { rule } = this
    const hit = rule !== undefined && this.random.chance(rule.probability)
    if (hit && rule.do === cut) {
      this.hits += 1
      to.write(piece.subarray(0, this.random.integer(0, piece.length - 1)), () => {
        from.destroy()
        to.destroy()
      })
    } else if (hit && rule.do === 'delay_answer' && cut === 'cut_answer') {
      this.hits += 1
      this.held += 1
      from.pause()
      setTimeout(() => {
        this.held -= 1
        forward(piece, from, to)
        from.resume()
      }, rule.delay_ms)
    } else forward(piece, from, to)
  }
}

function forward(piece: Buffer, from: Socket, to: Socket): void {
  if (to.destroyed || to.write(piece)) return
  from.pause()
  to.once('drain', () => from.resume())
}
