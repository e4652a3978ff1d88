import type { IncomingMessage } from 'node:http'
import type { AppServer } from '../service_context.js'

/** So many chunks may have any size: a client that produces its body step by step sends no more. */
const CHUNKS_MAX = 1_800
/** Least average size, in bytes, of further chunks. */
const CHUNK_BYTES_MIN = 16

/**
 * Closes the connection of a body with tiny chunks. The platform calls back for each chunk, for all that have arrived
 * in one turn of the event loop, and a megabyte in single bytes would hold it for most of a second. There is no
 * answer: while it is written, the parser would go on.
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
    // Whatever the parser still finds in the received data is dropped.
    request.off('data', count)
    request.destroy()
  }
  request.on('data', count)
}
