import type { IncomingMessage } from 'node:http'
import type { AppServer } from '../service_context.js'

/** So many chunks may be of any size: what writes a body bit by bit, as it comes to be, sends no more. */
const CHUNKS_MAX = 1_800
/** Bytes that chunks beyond have on average. */
const CHUNK_BYTES_MIN = 16

/**
 * Closes the connection of a body whose chunks are tiny. The platform calls back for each chunk, all that has arrived
 * of them in one turn of the event loop, which a body of a megabyte in single bytes would hold for most of a second.
 * There is no answer: while one is written, the parser would go on.
 */
export function refuseTinyChunks(app: AppServer): void {
  app.addHook('preParsing', (request, _reply, payload, done) => {
    if (request.headers['transfer-encoding'] !== undefined) watchChunks(request.raw)
    done(null, payload)
  })
}

function watchChunks(request: IncomingMessage): void {
  let chunks = 0
  let bytes = 0
  const count = (chunk: Buffer) => {
    chunks += 1
    bytes += chunk.length
    if (chunks <= CHUNKS_MAX || bytes >= chunks * CHUNK_BYTES_MIN) return
    // What the parser still finds in what has arrived goes nowhere.
    request.off('data', count)
    request.destroy()
  }
  request.on('data', count)
}
