import { type ClientRequest, request } from 'node:http'

const AGAIN_MS = 100

/** A live tail of one session, which goes on after the last entry that it was shown when its connection breaks. */
export class Tail {
  private readonly url: string
  private readonly path: string
  private readonly key: string
  private readonly waiting = new Map<number, () => void>()
  private last_seq = 0
  private call: ClientRequest | undefined
  private timer: NodeJS.Timeout | undefined
  private closed = false

  constructor(url: string, session: string, key: string, last_seq: number) {
    this.url = url
    this.path = `/api/v1/session/${session}/timeline`
    this.key = key
    this.last_seq = last_seq
    this.connect()
  }

  /** Whether an entry is shown in time. */
  shows(seq: number, wait_ms_max: number): Promise<boolean> {
    if (seq <= this.last_seq) return Promise.resolve(true)
    return new Promise((resolve) => {
      const end = (shown: boolean) => {
        clearTimeout(timer)
        this.waiting.delete(seq)
        resolve(shown)
      }
      const timer = setTimeout(() => end(false), wait_ms_max)
      this.waiting.set(seq, () => end(true))
    })
  }

  close(): void {
    this.closed = true
    clearTimeout(this.timer)
    this.call?.destroy()
  }

  private connect(): void {
    const headers = {
      authorization: `Bearer ${this.key}`,
      accept: 'text/event-stream',
      'last-event-id': String(this.last_seq),
    }
    const call = request(`${this.url}${this.path}`, { headers, agent: false })
    this.call = call
    call.on('error', () => {})
    call.on('close', () => {
      if (!this.closed) this.timer = setTimeout(() => this.connect(), AGAIN_MS)
    })
    call.on('response', (response) => {
      let unread = ''
      response.setEncoding('utf8')
      response.on('error', () => {})
      response.on('data', (chunk: string) => {
        const blocks = (unread + chunk).split('\n\n')
        unread = blocks.pop()!
        for (const block of blocks) this.see(Number(/^id: (\d+)$/m.exec(block)?.[1] ?? 0))
      })
    })
    call.end()
  }

  private see(seq: number): void {
    if (seq <= this.last_seq) return
    this.last_seq = seq
    for (const [awaited, shown] of this.waiting) if (awaited <= seq) shown()
  }
}
