import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** What a service is started with, so that its event loop is watched. */
export interface LoopWatch {
  env: Record<string, string>
  /** The longest stretch, in ms of processor time, that the loop worked since this was last asked. */
  longest_ms(): Promise<number>
}

export function watchEventLoop(): LoopWatch {
  const socket = join(tmpdir(), `annals-loop-${randomBytes(6).toString('hex')}.sock`)
  const preload = new URL('./event_loop_watch.mjs', import.meta.url).href
  return {
    env: { NODE_OPTIONS: `--import=${preload}`, LOOP_WATCH_SOCKET: socket },
    longest_ms: async () => {
      let text = ''
      for await (const chunk of connect(socket).setEncoding('utf8')) text += chunk
      return (JSON.parse(text) as { longest_ms: number }).longest_ms
    },
  }
}
