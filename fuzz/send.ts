import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { FuzzFailure } from './failure.ts'
import type { Request } from './requests.ts'

export interface Answer {
  status: number
  headers: IncomingHttpHeaders
  text: string
}

const REQUEST_MS_MAX = 30_000

/** Sends requests exactly as they are, and gives the answers. */
export function sender(serviceUrl: string, tokenFor: (request: Request) => string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const { hostname, port } = new URL(serviceUrl)
  return (given: Request): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const { method, path, body } = given
      const headers = {
        authorization: `Bearer ${tokenFor(given)}`,
        ...(body !== undefined && { 'content-length': String(Buffer.byteLength(body)) }),
        ...given.headers,
      }
      const request = httpRequest({ hostname, port, method, path, headers, agent }, async (response) => {
        const chunks: Buffer[] = []
        try {
          for await (const chunk of response) chunks.push(chunk as Buffer)
        } catch (error) {
          return reject(error)
        }
        const text = Buffer.concat(chunks).toString('utf8')
        resolve({ status: response.statusCode!, headers: response.headers, text })
      })
      request.setTimeout(REQUEST_MS_MAX, () => request.destroy(new FuzzFailure('no answer in 30 s')))
      request.on('error', reject)
      request.end(body)
    })
}
